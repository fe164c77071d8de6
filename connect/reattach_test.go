package connect

import (
	"testing"
	"testing/synctest"
	"time"

	"sparkbridge/connect/connecttest"
)

// Each stream that goes on where another ended is told, and how that one ended. The
// first is none, and attempts that fail are none either.
func TestReattachesAreTold(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		var clean, broken int
		b, err := w.s.OpenBus(t.Context(), BusOptions{Store: w.store, Reattached: func(b bool) {
			if b {
				broken++
			} else {
				clean++
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		w.closeLater(b)
		want := func(when string, wantClean, wantBroken int) {
			t.Helper()
			synctest.Wait()
			if clean != wantClean || broken != wantBroken {
				t.Errorf("%s: %d clean and %d broken, want %d and %d", when, clean, broken, wantClean, wantBroken)
			}
		}
		want("at first", 0, 0)
		w.quiet(b, time.Hour+30*time.Second)
		want("after an hour", w.server.Reattaches(), 0)
		if clean < 29 {
			t.Errorf("%d in an hour, want one every two minutes", clean)
		}
		before := clean
		for i := range 3 {
			w.server.Disconnect()
			w.emit(i, i+1)
			w.expect(b, i, i+1, true)
		}
		want("after three breaks", before, 3)
		w.server.Refuse(true)
		w.server.Disconnect()
		w.quiet(b, 2*time.Minute)
		want("in an outage", before, 3)
		w.server.Refuse(false)
		w.emit(3, 4)
		w.expect(b, 3, 4, true)
		want("after it", before, 4)
	})
}
