package bridge

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sparkbridge/configs"
	"sparkbridge/internal/journal"
)

// A retention that fails is tried each second where the journal may fill up, and told
// once a minute.
func TestAFailingRetentionIsToldOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, err := journal.Open(t.TempDir(), journal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil { // nothing can be asked of it any more
			t.Fatal(err)
		}
		log := &lines{}
		k := &keeper{cfg: configs.Journal{WhenFull: configs.WhenFullBlock, MaxBytes: 1000}, journal: j, outlets: []*outlet{{name: "events"}}, log: slog.New(slog.NewTextHandler(log, nil))}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); k.run(ctx) }()
		time.Sleep(5*time.Minute + time.Second)
		stop()
		<-done
		if told := strings.Count(log.String(), "old segments of the journal were not deleted"); told < 5 || told > 7 {
			t.Errorf("told %d times in five minutes:\n%s", told, log)
		}
	})
}
