package bridge

import (
	"fmt"
	"testing"
	"time"
)

func TestReach(t *testing.T) {
	document := func(run string, seconds, batch int, durations string) []byte {
		return fmt.Appendf(nil, `{"runId":"%s","timestamp":"2026-01-01T00:00:%02d.000Z","batchId":%d,"durationMs":{%s},"sources":[]}`, run, seconds, batch, durations)
	}
	const ran, idled = `"addBatch":1,"triggerExecution":2`, `"triggerExecution":2`
	for name, c := range map[string]struct {
		documents [][]byte
		want      reach
		says      string
	}{
		"none": {nil, reach{}, "no batch yet, so for how long the bridge may be away is not known (with a continuous trigger Spark never tells of any)"},
		"one": {[][]byte{document("r", 0, 0, ran)}, reach{documents: 1},
			"one batch so far, so for how long the bridge may be away is not known yet"},
		"idle ones count, other runs and what cannot be read do not": {
			[][]byte{document("other", 0, 0, ran), document("r", 1, 0, ran), []byte(`{`), document("r", 11, 1, idled), document("r", 41, 1, ran)},
			reach{documents: 3, idle: true, every: 10 * time.Second},
			"a batch or an idle trigger every 10.0 s, 3 kept so far (99 unless spark.sql.streaming.numRecentProgressUpdates says otherwise): the bridge may be away for about 16m30s before batches are out of reach",
		},
	} {
		if got := measure("r", c.documents); got != c.want || got.String() != c.says {
			t.Errorf("%s: %+v %s", name, got, got)
		}
	}
	set := reach{documents: 499, every: 2 * time.Minute}
	if got, want := set.String(), "a batch every 2m, 499 kept: the bridge may be away for about 16h38m before batches are out of reach"; got != want {
		t.Error(got)
	}
}

func TestInterval(t *testing.T) {
	for name, c := range map[string]struct {
		seconds []int
		want    time.Duration
	}{
		"one":              {[]int{0}, 0},
		"steady":           {[]int{0, 2, 4, 6, 8}, 2 * time.Second},
		"slow first batch": {[]int{0, 30, 32, 34, 36}, 2 * time.Second},
		"bursts":           {[]int{0, 10, 11, 21, 22, 32}, 6400 * time.Millisecond},
		"all at once":      {[]int{0, 0, 0, 0, 8}, 2 * time.Second},
	} {
		var times []time.Time
		for _, s := range c.seconds {
			times = append(times, time.Unix(int64(s), 0))
		}
		if got := interval(times); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestRoughly(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 12_345 * time.Microsecond: "12ms", 9_940 * time.Millisecond: "9.9s", 10 * time.Second: "10s",
		198 * time.Second: "3m18s", 5 * time.Minute: "5m", 5940 * time.Second: "1h39m", 2 * time.Hour: "2h0m",
	} {
		if got := roughly(d); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
}
