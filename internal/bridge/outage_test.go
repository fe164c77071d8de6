package bridge

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"sparkbridge/connect/connecttest"
)

// An outage that lasts costs no more than a short one: nothing is piled up, and no
// goroutine is left behind by a try that failed.
func TestALongOutageCostsNoMoreThanAShortOne(t *testing.T) {
	for name, cut := range map[string]func(*connecttest.Server){
		"refused": func(s *connecttest.Server) { s.Refuse(true); s.Disconnect() },
		"frozen":  func(s *connecttest.Server) { s.Freeze(); s.Refuse(true) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, connecttest.Options{})
				s := w.job(query("a"))
				w.start()
				after(time.Minute)
				s.Progress(progress("a", 0))
				after(time.Second)
				cut(w.spark)
				after(10 * time.Minute)
				heap, goroutines := footprint()
				after(5 * time.Hour)
				heapLater, goroutinesLater := footprint()
				t.Logf("heap %d kB and %d goroutines after ten minutes, %d kB and %d after five hours", heap>>10, goroutines, heapLater>>10, goroutinesLater)
				if heapLater > 2*heap+2<<20 || goroutinesLater > goroutines+2 {
					t.Errorf("heap %d kB and %d goroutines after ten minutes, %d kB and %d after five hours", heap>>10, goroutines, heapLater>>10, goroutinesLater)
				}
				w.spark.Refuse(false)
				after(10 * time.Minute)
				w.halt()
			})
		})
	}
}

// footprint is what is in use once the garbage is gone.
func footprint() (heap uint64, goroutines int) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, runtime.NumGoroutine()
}
