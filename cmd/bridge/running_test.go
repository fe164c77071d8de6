package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"sparkbridge/internal/journal"
	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// seed makes a journal as a bridge leaves it: seed folder. It holds six progress events
// of two queries; the sink events has all of them but two dead letters, 2 and 4, and
// a sink that is configured no more stands at 3.
func seed(ts *testscript.TestScript, _ bool, args []string) {
	j, err := journal.Open(ts.MkAbs(args[0]), journal.Options{})
	ts.Check(err)
	letters := map[uint64][]byte{}
	for n := uint64(1); n <= 6; n++ {
		query := fmt.Sprint("q", n%2)
		e := listener.Event{
			ID: fmt.Sprintf("r%s:progress:%d", query, n), Kind: listener.KindProgress, Origin: listener.OriginBus, Source: "etl", Sequence: n,
			QueryID: query, RunID: "r" + query, Name: query, BatchID: int64(n), Time: time.Unix(int64(n), 0), Payload: fmt.Appendf(nil, "{\n\"batchId\":%d}", n),
		}
		_, err := j.Append(context.Background(), listener.EncodeRecord(e))
		ts.Check(err)
		if n == 2 || n == 4 {
			letters[n], err = sinks.EncodeLetter(sinks.Letter{Event: e, Cause: sinks.CauseRefused, Reason: "answered 400", Attempts: 1, Time: time.Unix(100, 0)})
			ts.Check(err)
		}
	}
	ts.Check(errors.Join(
		j.State().SaveCursors(map[string]uint64{"events": 7, "gone": 3}),
		j.State().Change(journal.ShelfLetters, "events", letters), j.Close()))
}

// cut takes bytes from the end of a file: cut file 3.
func cut(ts *testscript.TestScript, _ bool, args []string) {
	info, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	n, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[0]), info.Size()-n))
}

// receive starts a webhook that writes the ids of what it gets into a file, and puts its
// address into RECEIVER: receive file.
func receive(ts *testscript.TestScript, _ bool, args []string) {
	var mu sync.Mutex
	path := ts.MkAbs(args[0])
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, _ = fmt.Fprintln(f, r.Header.Get("webhook-id"))
			_ = f.Close()
		}
	}))
	ts.Defer(server.Close)
	ts.Setenv("RECEIVER", server.URL)
}

// start runs a program until the script ends: start bridge run.
func start(ts *testscript.TestScript, _ bool, args []string) {
	cmd, _, stderr := command(ts, args[0], args[1:])
	cmd.Env = append(cmd.Env, "RECEIVER="+ts.Getenv("RECEIVER"))
	ts.Check(cmd.Start())
	ts.Defer(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			ts.Logf("%s: %v\n%s", args[0], err, stderr)
		}
	})
}

// until runs a program until what it prints, or a file, matches: until regexp bridge dlq
// list, until regexp cat file.
func until(ts *testscript.TestScript, _ bool, args []string) {
	wanted := regexp.MustCompile(args[0])
	var last string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if args[1] == "cat" {
			b, _ := os.ReadFile(ts.MkAbs(args[2]))
			last = string(b)
		} else {
			cmd, stdout, stderr := command(ts, args[1], args[2:])
			cmd.Env = append(cmd.Env, "RECEIVER="+ts.Getenv("RECEIVER"))
			_ = cmd.Run()
			last = stdout.String() + stderr.String()
		}
		if wanted.MatchString(last) {
			return
		}
	}
	ts.Fatalf("%s does not match %s", last, args[0])
}

// socketMode checks the mode of the socket: socketmode folder 600.
func socketMode(ts *testscript.TestScript, _ bool, args []string) {
	info, err := os.Stat(filepath.Join(ts.MkAbs(args[0]), "bridge.sock"))
	ts.Check(err)
	if got := fmt.Sprintf("%o", info.Mode().Perm()); got != args[1] || !strings.HasPrefix(info.Mode().String(), "S") {
		ts.Fatalf("mode of the socket %s, want %s", info.Mode(), args[1])
	}
}
