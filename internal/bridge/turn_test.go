package bridge

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"sparkbridge/configs"
	"sparkbridge/internal/journal"
	"sparkbridge/listener"
)

// keeping runs the keeper of a journal that keeps 3,000 bytes in segments of 1,000.
func keeping(t *testing.T, j *journal.Journal, whenFull configs.WhenFull, log *lines, sources ...*source) (stop func()) {
	t.Helper()
	k := &keeper{cfg: configs.Journal{WhenFull: whenFull, MaxBytes: 3000}, journal: j, sources: sources, log: slog.New(slog.NewTextHandler(log, nil))}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { k.run(ctx); close(ended) }()
	return func() { cancel(); <-ended }
}

// However fast events come, the journal is no larger than it may be and the segment
// that is written to.
func TestRetentionKeepsUpWithTheWriting(t *testing.T) {
	for _, whenFull := range []configs.WhenFull{configs.WhenFullDropOldest, configs.WhenFullBlock} {
		synctest.Test(t, func(t *testing.T) {
			log := &lines{}
			j, err := journal.Open(t.TempDir(), journal.Options{SegmentBytes: 1000, MaxBytes: 3000})
			if err != nil {
				t.Fatal(err)
			}
			stop := keeping(t, j, whenFull, log)
			for batch := range int64(100) {
				put(t, j, progressOf("a", batch))
				synctest.Wait() // and no time passes
				if bytes := j.Stats().Bytes; bytes > 4000 {
					t.Fatalf("%s: after batch %d the journal has %d bytes", whenFull, batch, bytes)
				}
			}
			stop()
			if err := j.Close(); err != nil || log.String() != "" {
				t.Error(err, log)
			}
		})
	}
}

// A bridge that never lives for long deletes too.
func TestRetentionAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &lines{}
		j, err := journal.Open(t.TempDir(), journal.Options{SegmentBytes: 1000, MaxBytes: 3000})
		if err != nil {
			t.Fatal(err)
		}
		for batch := range int64(100) {
			put(t, j, progressOf("a", batch))
		}
		<-j.Turned() // what the next start does not hear of
		stop := keeping(t, j, configs.WhenFullDropOldest, log)
		synctest.Wait()
		if bytes := j.Stats().Bytes; bytes > 3000 {
			t.Errorf("the journal has %d bytes", bytes)
		}
		stop()
		if err := j.Close(); err != nil || log.String() != "" {
			t.Error(err, log)
		}
	})
}

// The marks of a source cannot be stored while its event is under way, which turned the
// segment; retention comes back soon after.
func TestRetentionComesBackForMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &lines{}
		j, err := journal.Open(t.TempDir(), journal.Options{SegmentBytes: 1000, MaxBytes: 3000})
		if err != nil {
			t.Fatal(err)
		}
		s := &source{memory: &memory{journal: j, source: "etl"}}
		admission := listener.NewAdmission(listener.Session{Source: "etl"})
		s.admission.Store(admission)
		busy := make(chan struct{})
		go func() { _, _ = admission.Snapshot(func([]byte) error { <-busy; return nil }) }()
		synctest.Wait()
		stop := keeping(t, j, configs.WhenFullDropOldest, log, s)
		for batch := range int64(100) {
			put(t, j, progressOf("a", batch))
		}
		synctest.Wait()
		if first, _ := j.Bounds(); first != 1 {
			t.Errorf("the journal begins at %d, and no marks were stored", first)
		}
		close(busy)
		after(2 * time.Second)
		if bytes := j.Stats().Bytes; bytes > 3000 {
			t.Errorf("the journal has %d bytes", bytes)
		}
		stop()
		if err := j.Close(); err != nil || log.String() != "" {
			t.Error(err, log)
		}
	})
}
