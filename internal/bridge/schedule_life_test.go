package bridge

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"google.golang.org/grpc"

	"sparkbridge/configs"
	"sparkbridge/connect"
	"sparkbridge/connect/connecttest"
	"sparkbridge/internal/journal"
)

// life is one process of the bridge, from its start to its stop or its crash.
//
// A crash is played in this order: from one moment on nothing of the process reaches
// the disk or the network any more; its journal is copied as it stands; its
// connections close, as the kernel closes those of a dead process. What still runs of
// it then changes nothing, and the next life begins with the copy.
type life struct {
	dir     string
	journal *journal.Journal
	stop    context.CancelFunc
	done    chan struct{}
	err     error // how it ended, once done
	lookout *lookout
	full    *atomic.Bool // the disk is full

	dead    atomic.Bool
	copied  string // where the crash left the journal
	once    sync.Once
	fuse    atomic.Pointer[fuse]
	network func(context.Context, string) (net.Conn, error)

	mu    sync.Mutex
	conns map[*mortal]struct{}
}

// fuse crashes a life in the middle of a step of its journal.
type fuse struct {
	step journal.Step
	left atomic.Int64 // so many of these steps pass
}

var errDead = errors.New("the process is dead")

// beLife starts a process over the journal in dir.
func beLife(spark *connecttest.Server, dir string, cfg configs.Source, w *lookout, full *atomic.Bool, log *slog.Logger) (*life, error) {
	l := &life{dir: dir, done: make(chan struct{}), lookout: w, full: full, network: spark.Dialer, conns: map[*mortal]struct{}{}}
	var err error
	if l.journal, err = journal.Open(dir, journal.Options{Disturb: l.disturb}); err != nil {
		return nil, err
	}
	client := connect.NewClient(connect.ClientOptions{Log: log, Dial: []grpc.DialOption{
		grpc.WithContextDialer(l.dial), grpc.WithUnaryInterceptor(l.intercept),
	}})
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	go func() {
		defer close(l.done)
		err := carry(ctx, &configs.Config{Sources: []configs.Source{cfg}}, l.journal, client, log, newFace("test"))
		if closing := l.journal.Close(); !l.dead.Load() && !l.full.Load() {
			err = errors.Join(err, closing)
		}
		l.err = err
	}()
	return l, nil
}

// disturb lets no dead process write, no full disk take anything, and burns the fuse.
func (l *life) disturb(step journal.Step) error {
	if l.dead.Load() {
		return errDead
	}
	if f := l.fuse.Load(); f != nil && f.step == step && f.left.Add(-1) < 0 {
		l.crash()
		return errDead
	}
	if l.full.Load() && step != journal.StepSync {
		return syscall.ENOSPC
	}
	return nil
}

// crash ends the process as kill -9 does.
func (l *life) crash() {
	l.once.Do(func() {
		l.dead.Store(true)
		l.copied = l.dir + "+"
		if err := copyJournal(l.copied, l.dir); err != nil {
			l.lookout.report("copy the journal of a crash: %v", err)
		}
		l.mu.Lock()
		for c := range l.conns {
			_ = c.Conn.Close() // whatever it says, it is closed
		}
		l.mu.Unlock()
		l.stop()
	})
}

// next is where the next life finds its journal.
func (l *life) next() string {
	if l.dead.Load() {
		return l.copied
	}
	return l.dir
}

// copyJournal copies the state first: a log may be longer than its state says, and
// never shorter.
func copyJournal(to, from string) error {
	files, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	const state = "state.db"
	names := []string{state}
	for _, f := range files {
		if f.Name() != state {
			names = append(names, f.Name())
		}
	}
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(from, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, name), b, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// intercept sees what the process asks before it is sent.
func (l *life) intercept(ctx context.Context, method string, in, out any, conn *grpc.ClientConn, call grpc.UnaryInvoker, o ...grpc.CallOption) error {
	if !l.dead.Load() {
		l.lookout.asked(l, in)
	}
	return call(ctx, method, in, out, conn, o...)
}

func (l *life) dial(ctx context.Context, address string) (net.Conn, error) {
	if l.dead.Load() {
		return nil, errDead
	}
	conn, err := l.network(ctx, address)
	if err != nil {
		return nil, err
	}
	c := &mortal{Conn: conn, of: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c] = struct{}{}
	return c, nil
}

// mortal is a connection of a process that may die.
type mortal struct {
	net.Conn
	of *life
}

func (c *mortal) Write(p []byte) (int, error) {
	if c.of.dead.Load() {
		return 0, errDead
	}
	return c.Conn.Write(p)
}

func (c *mortal) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.of.dead.Load() {
		return 0, errDead
	}
	return n, err
}

func (c *mortal) Close() error {
	c.of.mu.Lock()
	delete(c.of.conns, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
