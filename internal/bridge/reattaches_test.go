package bridge

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"sparkbridge/configs"
	"sparkbridge/connect/connecttest"
	"sparkbridge/internal/watch"
)

// The bus is read on after Spark's own ends of streams, after breaks, and after a
// restart in time; each is counted for what it is, and only this process's own.
func TestReattachesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		w.source.OnStop = configs.OnStopKeep
		s := w.job(query("a"))
		want := func(end, broken, restart uint64) {
			t.Helper()
			got := w.face.status().Sources[0].Reattaches
			if want := (map[watch.Stop]uint64{watch.StopEnd: end, watch.StopBreak: broken, watch.StopRestart: restart}); !maps.Equal(got, want) {
				t.Errorf("reattaches %v, want %v\n%s", got, want, w.log)
			}
		}
		w.start()
		after(5 * time.Minute)
		want(2, 0, 0)
		w.spark.Disconnect()
		s.Progress(progress("a", 0))
		after(time.Second)
		want(2, 1, 0)
		w.halt()
		after(time.Minute)
		w.start()
		after(time.Minute)
		want(0, 0, 1)
		w.halt()
	})
}
