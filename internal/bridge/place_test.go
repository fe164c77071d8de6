package bridge

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"sparkbridge/connect/connecttest"
)

// A bridge that is stopped while it waits for a connection string goes nowhere.
func TestStoppedBeforeThereIsAPlaceToGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		w.source.RemoteFile = filepath.Join(t.TempDir(), "none")
		w.start()
		after(time.Minute)
		w.halt()
		if events := w.events(); len(events) != 1 {
			t.Errorf("%d events, want the one that it waits: %s", len(events), w.log)
		}
	})
}
