package journal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	crashDirEnv  = "JOURNAL_CRASH_DIR"
	crashSeedEnv = "JOURNAL_CRASH_SEED"
	crashWriters = 4
)

var crashOptions = Options{SegmentBytes: 8 << 10, MaxBytes: 48 << 10}

// crashChild appends until it is killed. It says on its standard output what it
// was told: "ack <sequence> <body>" for each record, "floor <sequence>" before
// retention may delete what is below.
func crashChild(dir string) int {
	fmt.Println("opening")
	o := crashOptions
	o.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	j, err := Open(dir, o)
	if err != nil {
		fmt.Println("failed", err)
		return 1
	}
	seed := os.Getenv(crashSeedEnv)
	var wg sync.WaitGroup
	for w := range crashWriters {
		wg.Go(func() { crashWrite(j, fmt.Sprint(seed, "-", w)) })
	}
	wg.Go(func() { crashRetain(j) })
	wg.Wait()
	return 1
}

func crashWrite(j *Journal, name string) {
	rnd := rand.New(rand.NewPCG(uint64(len(name)), uint64(name[len(name)-1])))
	for n := 0; ; {
		var bodies [][]byte
		for range 1 + rnd.IntN(4) {
			bodies = append(bodies, fmt.Appendf(nil, "%s:%d:%s", name, n, strings.Repeat("z", rnd.IntN(400))))
			n++
		}
		first, err := j.Append(context.Background(), bodies...)
		if err != nil {
			fmt.Println("failed", err)
			return
		}
		var said strings.Builder
		for i, b := range bodies {
			fmt.Fprintf(&said, "ack %d %s\n", first+uint64(i), b)
		}
		_, _ = os.Stdout.WriteString(said.String())
	}
}

func crashRetain(j *Journal) {
	for {
		_, next := j.Bounds()
		fmt.Println("floor", next)
		err := errors.Join(
			j.State().SaveMarks("source", next, []byte("marks")),
			j.State().SaveCursors(map[string]uint64{"sink": next}),
			j.Retain(next))
		if err != nil {
			fmt.Println("failed", err)
			return
		}
	}
}

// ledger is what the parent knows of all children.
type ledger struct {
	acked map[uint64]string
	top   uint64 // greatest acknowledged sequence
	floor uint64 // greatest announced floor
}

// listen reads what a child says, and kills it after so many acknowledgements.
func (l *ledger) listen(t *testing.T, out io.Reader, acks int, kill func()) {
	t.Helper()
	in := bufio.NewReader(out)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return // what comes without its end was cut by the kill
		}
		word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch word {
		case "opening":
		case "ack":
			var sequence uint64
			number, body, _ := strings.Cut(rest, " ")
			if _, err := fmt.Sscan(number, &sequence); err != nil {
				t.Fatalf("child said %q", line)
			}
			if other, twice := l.acked[sequence]; twice {
				t.Fatalf("%d is acknowledged for %q and %q", sequence, other, body)
			}
			l.acked[sequence] = body
			l.top = max(l.top, sequence)
			acks--
		case "floor":
			if _, err := fmt.Sscan(rest, &l.floor); err != nil {
				t.Fatalf("child said %q", line)
			}
		default:
			t.Fatalf("child said %q", line)
		}
		if acks <= 0 {
			kill()
		}
	}
}

// audit compares the journal with the ledger.
func (l *ledger) audit(t *testing.T, dir string) {
	t.Helper()
	j, err := Open(dir, crashOptions)
	if err != nil {
		t.Fatalf("Open after a kill: %v", err)
	}
	first, next := j.Bounds()
	if next <= l.top {
		t.Fatalf("log ends before %d, and %d was acknowledged", next, l.top)
	}
	if first > max(l.floor, 1) {
		t.Fatalf("log begins at %d, and only what is below %d may be gone", first, l.floor)
	}
	list, err := readAll(t.Context(), j)
	if err != nil {
		t.Fatalf("read after a kill: %v", err)
	}
	seen := make(map[string]bool)
	last := make(map[string]int)
	for i, body := range bodiesOf(t, list, first) {
		if want, ok := l.acked[first+uint64(i)]; ok && want != body {
			t.Fatalf("record %d is %q, acknowledged was %q", first+uint64(i), body, want)
		}
		if seen[body] {
			t.Fatalf("%q is there twice", body)
		}
		seen[body] = true
		parts := strings.Split(body, ":")
		var n int
		if _, err := fmt.Sscan(parts[1], &n); err != nil {
			t.Fatalf("record %d is %q", first+uint64(i), body)
		}
		if before, ok := last[parts[0]]; ok && n != before+1 {
			t.Fatalf("writer %s: %d follows %d", parts[0], n, before)
		}
		last[parts[0]] = n
	}
	for sequence := range l.acked {
		if sequence < first {
			delete(l.acked, sequence)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// A process is killed at random moments, hundreds of times: what it was told is
// on the disk is there, in order, once, until retention was allowed to delete it.
func TestKill(t *testing.T) {
	kills, budget := 150, 30*time.Second
	if testing.Short() {
		kills = 10
	}
	// In memory a sync takes no time, on a disk most of the time goes to it: the
	// kills meet different moments.
	t.Run("memory", func(t *testing.T) { killOften(t, quickDir(t), kills, budget) })
	t.Run("disk", func(t *testing.T) { killOften(t, t.TempDir(), kills, budget) })
}

func killOften(t *testing.T, dir string, kills int, budget time.Duration) {
	const seed = 20240229
	rnd := rand.New(rand.NewPCG(seed, 0))
	l := &ledger{acked: make(map[uint64]string)}
	begin := time.Now()
	round := 0
	for ; round < kills && time.Since(begin) < budget; round++ {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), crashDirEnv+"="+dir, crashSeedEnv+"="+fmt.Sprint(round), "GOMAXPROCS=2")
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		pause := time.Duration(rnd.IntN(3000)) * time.Microsecond // nothing relies on its length
		var once sync.Once
		l.listen(t, out, rnd.IntN(200)-10, func() {
			once.Do(func() {
				time.Sleep(pause)
				_ = cmd.Process.Kill()
			})
		})
		_ = cmd.Wait() // it was killed
		l.audit(t, dir)
	}
	t.Logf("%d kills in %v, %d records acknowledged, retention up to %d", round, time.Since(begin).Round(time.Millisecond), l.top, l.floor)
	if l.top < uint64(round) || first(mustOpen(t, dir, crashOptions)) == 1 {
		t.Errorf("%d acknowledged records in %d rounds: neither retention nor much else was tried", l.top, round)
	}
}
