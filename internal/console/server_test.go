package console

import (
	"errors"
	"testing"
	"time"

	"sparkbridge/connect"
)

// A server that is not there is more often a wrong address than weather.
func TestServerThatDoesNotAnswer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.server.Refuse(true)
		w.server.Disconnect()
		began := time.Now()
		_, err := w.place.Attach(t.Context())
		fails(t, err, "127.0.0.1:15002 has not answered within 30s: start Spark Connect there, or name another server by --remote or SPARK_REMOTE: ")
		if took := time.Since(began); took < 30*time.Second || took > time.Minute {
			t.Errorf("waited for %s", took)
		}
		_, err = w.place.Attach(cancelled(t, time.Second))
		fails(t, err, "context canceled")
		w.server.Refuse(false)
	})
}

func TestSessionThatIsNotThere(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.place.Remote = "sc://127.0.0.1:15002/;user_id=etl;session_id=" + otherID
		_, err := w.place.Attach(t.Context())
		fails(t, err, "user etl has no session "+otherID+" on 127.0.0.1:15002: ")
		if !errors.Is(err, connect.ErrSessionNotFound) {
			t.Errorf("error %v does not say that it is not there", err)
		}
		w.place.Remote = ""
		_, err = w.place.Attach(t.Context())
		fails(t, err, "SPARK_REMOTE is not set")
		w.place.Remote = "sc://127.0.0.1:15002/;user_id=etl"
		_, err = w.place.Attach(t.Context())
		fails(t, err, "session_id is missing")
		w.place.Getenv = func(name string) string {
			return map[string]string{"SPARK_REMOTE": "sc://127.0.0.1:15002/;session_id=" + sessionID, "SPARK_USER": "etl"}[name]
		}
		w.place.Remote = ""
		s, err := w.place.Attach(t.Context())
		fails(t, err, "")
		fails(t, s.Close(), "")
	})
}
