package journal

import (
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"
)

func TestStats(t *testing.T) {
	clock := time.Unix(1000, 0)
	disk := &faults{}
	var writes, failures int
	j, err := open(quickDir(t), Options{
		SegmentBytes: 200, MaxBytes: 1, Now: func() time.Time { clock = clock.Add(time.Second); return clock },
		Written: func(took time.Duration, err error) {
			writes++
			if err != nil {
				failures++
			}
			if took < 0 {
				t.Errorf("a write took %s", took)
			}
		},
	}, disk.disk())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if st := j.Stats(); st.First != 1 || st.Next != 1 || !st.Oldest.IsZero() || st.Segments != 1 || st.Bytes != segmentHead {
		t.Errorf("an empty journal: %+v", st)
	}
	for range 10 {
		mustAppend(t, j, "a record of some length, so that few fit into a segment")
	}
	st := j.Stats()
	if st.First != 1 || st.Next != 11 || st.Segments < 3 || st.Bytes < 10*50 || !st.Oldest.Equal(time.Unix(1001, 0)) || st.Err != nil {
		t.Errorf("ten records: %+v", st)
	}
	disk.sync = func() error { return errors.New("no space") }
	for range 2 {
		if _, err := j.Append(t.Context(), []byte("x")); err == nil {
			t.Fatal("the write did not fail")
		}
	}
	if st := j.Stats(); st.Err == nil || st.Failing.IsZero() || st.Next != 11 {
		t.Errorf("after failures: %+v", st)
	}
	disk.sync = nil
	mustAppend(t, j, "y")
	if st := j.Stats(); st.Err != nil || !st.Failing.IsZero() {
		t.Errorf("after a success: %+v", st)
	}
	if writes != 13 || failures != 2 {
		t.Errorf("%d writes were told, %d of them failures", writes, failures)
	}
	if err := j.Retain(12); err != nil {
		t.Fatal(err)
	}
	first, _ := j.Bounds()
	if st := j.Stats(); first == 1 || st.First != first || !st.Oldest.After(time.Unix(1001, 0)) {
		t.Errorf("after retention: first %d, %+v", first, st)
	}
}

func TestSince(t *testing.T) {
	clock := time.Unix(1000, 0)
	dir := quickDir(t)
	o := Options{SegmentBytes: 200, Now: func() time.Time { return clock }}
	j := mustOpen(t, dir, o)
	ask := func(at int64, want uint64) {
		t.Helper()
		if got, err := j.Since(time.Unix(at, 0)); err != nil || got != want {
			t.Errorf("since %d: %d, %v; want %d", at, got, err, want)
		}
	}
	ask(0, 1)
	ask(2000, 1)
	for i := range 10 {
		clock = time.Unix(1000+10*int64(i), 0)
		mustAppend(t, j, "one record of a group", "and another one")
	}
	for i := range 10 {
		ask(1000+10*int64(i), uint64(1+2*i))
		ask(1000+10*int64(i)-1, uint64(1+2*i))
		ask(1000+10*int64(i)+1, uint64(3+2*i))
	}
	ask(5000, 21)
}

// Retention may take away the segment that is being looked into: the answer is then the
// oldest that is left. A segment that somebody else took away is an error.
func TestSinceBesideRetention(t *testing.T) {
	clock := time.Unix(1000, 0)
	j := mustOpen(t, quickDir(t), Options{SegmentBytes: 200, MaxBytes: 1, Now: func() time.Time { return clock }})
	for range 2000 {
		mustAppend(t, j, "one record of a group", "and another one")
	}
	retained := make(chan error, 1)
	go func() {
		for floor := uint64(1); floor < 4000; floor++ { // segment by segment
			if err := j.Retain(floor); err != nil {
				retained <- err
				return
			}
		}
		retained <- nil
	}()
	for {
		before, _ := j.Bounds()
		got, err := j.Since(time.Unix(0, 0))
		if after, _ := j.Bounds(); err != nil || got < before || got > after {
			t.Errorf("%d, %v; the journal began at %d, and then at %d", got, err, before, after)
		}
		select {
		case err := <-retained:
			if err != nil {
				t.Error(err)
			}
			if err := os.Remove(j.segments[0].path); err != nil {
				t.Fatal(err)
			}
			if _, err := j.Since(time.Unix(0, 0)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("without its file: %v", err)
			}
			return
		default:
		}
	}
}
