package connect

import (
	"errors"
	"testing"

	"sparkbridge/connect/connecttest"
)

func TestSparkVersionNeverCreates(t *testing.T) {
	inWorld(t, connecttest.Options{Version: connecttest.Spark40}, func(t *testing.T, w *world) {
		if got, err := w.s.SparkVersion(t.Context()); got != "4.0.0" || err != nil {
			t.Errorf("SparkVersion = %q, %v", got, err)
		}
		w.stop()
		w.restart()
		if got, err := w.session().SparkVersion(t.Context()); got != "" || !errors.Is(err, ErrSessionNotFound) {
			t.Errorf("SparkVersion of a missing session = %q, %v", got, err)
		}
		if _, ok := w.server.Session("etl", testSession); ok {
			t.Error("the session was created")
		}
	})
}
