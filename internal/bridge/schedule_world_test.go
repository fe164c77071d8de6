package bridge

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sparkbridge/configs"
	"sparkbridge/connect/connecttest"
)

// schedworld is what stays the same over one schedule.
type schedworld struct {
	options connecttest.Options
	source  configs.Source
	limit   string // of the connection string
}

func newSchedule(t *testing.T, seed uint64, met map[string]int) *schedule {
	rng := rand.New(rand.NewPCG(seed, 0x5ca1ab1e))
	w := newSchedWorld(t, rng)
	s := &schedule{t: t, seed: seed, rng: rng, world: w, steps: plan(rng), hit: met, log: &lines{}, root: journalRoot(t), began: time.Now(), moved: map[string]time.Time{}}
	s.spark = connecttest.Start(t, w.options)
	s.job = newJob(s.spark, rand.New(rand.NewPCG(seed, 1)))
	s.lookout = newLookout(s.job)
	return s
}

func newSchedWorld(t *testing.T, rng *rand.Rand) schedworld {
	w := schedworld{
		options: connecttest.Options{
			Version:                 pick(rng, connecttest.Spark42, connecttest.Spark42, connecttest.Spark40),
			SenderMaxStreamDuration: pick(rng, 2*time.Minute, 2*time.Minute, 20*time.Second),
			RetryBufferBytes:        pick(rng, 0, 0, 0, 8<<10),
			NoExecutionProgress:     rng.IntN(2) == 0,
			SlowAdd:                 rng.IntN(4) == 0,
		},
		source: configs.Source{
			Name:         "etl",
			Mode:         pick(rng, configs.ModeAuto, configs.ModeAuto, configs.ModeAuto, configs.ModeAuto, configs.ModeBus, configs.ModePoll),
			Attach:       pick(rng, configs.AttachFirstQuery, configs.AttachFirstQuery, configs.AttachAtOnce),
			PollInterval: pick(rng, 5*time.Second, 10*time.Second),
		},
	}
	w.source.Takeover = w.source.Mode != configs.ModePoll && rng.IntN(6) == 0
	if rng.IntN(2) == 0 {
		w.source.RemoteFile = filepath.Join(t.TempDir(), "remote")
	}
	if rng.IntN(4) == 0 {
		w.limit = ";grpc_max_message_size=262144"
	}
	return w
}

// journalRoot is a folder of the test, in memory where there is such a one.
func journalRoot(t *testing.T) string {
	t.Helper()
	const memory = "/dev/shm"
	if _, err := os.Stat(memory); err != nil {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, strings.NewReplacer("/", "-", "=", "-").Replace(t.Name())) //nolint:usetesting // in memory
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
