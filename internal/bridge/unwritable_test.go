package bridge

import (
	"log/slog"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sparkbridge/configs"
	"sparkbridge/connect/connecttest"
	"sparkbridge/internal/journal"
)

// A delivery may be given up for another reason than that the journal was full for too
// long: the time of polling is over, or the session has moved. Its marks are ahead of
// the journal then, too.
func TestADeliveryThatIsGivenUpIsDecidedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		session := w.job(query("a"))
		session.HoldBus()
		w.source.Remote = configs.ConnectionString("sc://" + w.spark.Addr() + "/;user_id=u;session_id=" + sessionID)
		var full atomic.Bool
		l, err := beLife(w.spark, filepath.Join(w.dir, "journal"), w.source, newLookout(&job{}), &full, slog.New(slog.NewTextHandler(w.log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		after(50 * time.Second) // polling lasts a minute, and then the bus is tried again
		full.Store(true)
		session.SetQueries(connecttest.Query{ID: "q-a", RunID: "a", Name: "n-a", Recent: []string{document("a", 0)}})
		after(40 * time.Second)
		full.Store(false)
		after(5 * time.Minute)
		l.stop()
		<-l.done
		j, err := journal.Open(l.dir, journal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		events, err := readJournal(j, 1)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, e := range events {
			ids = append(ids, e.ID)
		}
		if !slices.Contains(ids, "a:progress:0") {
			t.Errorf("a:progress:0 is not in the journal: %v\n%s", ids, w.log)
		}
	})
}
