package sinktest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// verdict is a test that takes note of its failures.
type verdict struct {
	testing.TB
	failures []string
}

func (v *verdict) Errorf(format string, args ...any) {
	v.failures = append(v.failures, fmt.Sprintf(format, args...))
}

func (v *verdict) Fatalf(format string, args ...any) {
	v.Errorf(format, args...)
	runtime.Goexit()
}

// judge runs one case and returns what it found.
func judge(t *testing.T, run func(testing.TB, Harness), h Harness) string {
	t.Helper()
	v := &verdict{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(v, h)
	}()
	<-done
	return strings.Join(v.failures, "\n")
}

func TestAGoodSinkPasses(t *testing.T) {
	Run(t, func(*testing.T) Harness { return (&memory{}).harness() })
}

func TestAGoodSinkWithALimitPasses(t *testing.T) {
	if found := judge(t, largeEvents, (&memory{limit: 1 << 20}).harness()); found != "" {
		t.Error(found)
	}
}

func TestBrokenPromisesAreFound(t *testing.T) {
	stranger := func(m *Message) { m.Attributes["sparktruncated"] = "true" }
	for name, c := range map[string]struct {
		sink *memory
		run  func(testing.TB, Harness)
		want string
	}{
		"reorders":           {&memory{early: true}, orderPerQuery, "arrived after event"},
		"acknowledges blind": {&memory{sloppy: true}, downAtStart, "10 acknowledged"},
		"does not cancel":    {&memory{deaf: true}, cancelReturns, "after it was cancelled"},
		"cuts without need":  {&memory{limit: 5000, tamper: stranger}, orderPerQuery, "cut although"},
		"does not cut":       {&memory{tamper: func(m *Message) { m.Payload = m.Payload[:100] }}, largeEvents, "payload of 100 bytes"},
		"changes a byte":     {&memory{tamper: func(m *Message) { m.Payload = append([]byte(" "), m.Payload...) }}, oddContent, "payload of"},
		"loses an attribute": {&memory{tamper: func(m *Message) { delete(m.Attributes, "sequence") }}, orderPerQuery, "attributes"},
		"shortens a name":    {&memory{tamper: trimNames}, oddContent, "attributes"},
		"mixes keys":         {&memory{tamper: func(m *Message) { m.PartitionKey = "same" }}, orderPerQuery, "partition key"},
		"doubts an id":       {&memory{tamper: func(m *Message) { m.IDs = append(m.IDs, "x") }}, orderPerQuery, "in another place"},
		"mislabels":          {&memory{tamper: func(m *Message) { m.ContentType = "application/json" }}, oddContent, "content type"},
		"hides the masking":  {&memory{tamper: func(m *Message) { delete(m.Attributes, "sparkredacted") }}, maskedEvents, "attributes"},
		"unmasks":            {&memory{tamper: func(m *Message) { m.Payload = bytes.Replace(m.Payload, []byte("***"), []byte(confessed), 1) }}, maskedEvents, "a credential arrived"},
		"repeats otherwise":  {&memory{tamper: counting()}, repeatsAreTheSame, "attributes"},
	} {
		t.Run(name, func(t *testing.T) {
			if found := judge(t, c.run, c.sink.harness()); !strings.Contains(found, c.want) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}

func trimNames(m *Message) {
	if name := m.Attributes["sparkqueryname"]; name != "" {
		m.Attributes["sparkqueryname"] = strings.TrimSpace(name)
	}
}

// counting gives the repeats of events another time than their first delivery.
func counting() func(*Message) {
	seen := map[string]bool{}
	return func(m *Message) {
		if seen[m.ID()] {
			m.Attributes["recordedtime"] = "2026-01-01T00:00:00Z"
		}
		seen[m.ID()] = true
	}
}

// The proxy does what its methods say, seen by a client of an echo server.
func TestProxy(t *testing.T) {
	p := NewProxy(t, echo(t))
	first := dial(t, p)
	exchange(t, first, time.Minute)
	p.Slow(t, 100*time.Millisecond)
	began := time.Now()
	exchange(t, first, time.Minute)
	if took := time.Since(began); took < 100*time.Millisecond {
		t.Errorf("slow answer after %s", took)
	}
	p.Slow(t, 0)

	p.Freeze(t)
	if err := try(first, 50*time.Millisecond); err == nil {
		t.Error("answered while frozen")
	}
	second := dial(t, p)
	p.Thaw(t)
	exchange(t, second, time.Minute)

	p.Stop(t)
	if err := try(second, time.Minute); err == nil {
		t.Error("connection outlived a stop")
	}
	if c, err := net.Dial("tcp", p.Addr()); err == nil {
		c.Close()
		t.Error("accepted while stopped")
	}
	p.Start(t)
	exchange(t, dial(t, p), time.Minute)
}

// echo is a server that sends back what it gets.
func echo(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); _, _ = io.Copy(c, c) }()
		}
	}()
	return l.Addr().String()
}

func dial(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func exchange(t *testing.T, c net.Conn, within time.Duration) {
	t.Helper()
	if err := try(c, within); err != nil {
		t.Fatal(err)
	}
}

func try(c net.Conn, within time.Duration) error {
	_ = c.SetDeadline(time.Now().Add(within))
	if _, err := c.Write([]byte("ping")); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 4))
	return err
}

// What the suite's journal is asked for in vain is not lost, as the worker asks again.
func TestTheFeedLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feed{events: stream(1, 8), batch: 4, pace: time.Second}
		hurried, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if got, err := f.Next(hurried, 0, 0); len(got) != 0 || err == nil {
			t.Errorf("%d events, %v", len(got), err)
		}
		if got, err := f.Next(t.Context(), 0, 0); len(got) != 4 || got[0].Sequence != 1 || err != nil {
			t.Errorf("%d events, %v", len(got), err)
		}
	})
}
