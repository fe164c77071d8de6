package connecttest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sparkbridge/connect/connecttest"
)

// inBubble runs a test against a server in memory, in time that passes at once.
func inBubble(t *testing.T, o connecttest.Options, test func(*testing.T, *connecttest.Server, *client)) {
	synctest.Test(t, func(t *testing.T) {
		server := connecttest.Start(t, o)
		test(t, server, newClient(t, server.Dial(t)))
	})
}

func session(t *testing.T, s *connecttest.Server, c *client) *connecttest.Session {
	t.Helper()
	session, err := s.CreateSession(c.user, c.session)
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func TestADayOfEventsOverCleanEnds(t *testing.T) {
	inBubble(t, connecttest.Options{}, func(t *testing.T, s *connecttest.Server, c *client) {
		job := session(t, s, c)
		b := c.open()
		time.AfterFunc(time.Hour, func() { job.Progress(`{"batchId":0}`) })
		for range 24 {
			b.event()
			time.AfterFunc(time.Hour, func() { job.Progress(`{"batchId":1}`) })
			if err := c.releaseUntil(b.operation, b.last); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.Reattaches(); got < 24*29 {
			t.Errorf("reattached %d times in a day, want once every two minutes", got)
		}
		c.remove()
		if frames, err := drain(b.stream); err != nil || frames[len(frames)-1].GetResultComplete() == nil {
			t.Fatalf("after REMOVE: %v, %v", frames, err)
		}
		if got := len(s.ReleasedUntil(b.operation)); got != 24 {
			t.Errorf("released %d times, want 24", got)
		}
	})
}

func TestRestartForgetsSessions(t *testing.T) {
	inBubble(t, connecttest.Options{}, func(t *testing.T, s *connecttest.Server, c *client) {
		c.create()
		b := c.open()
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		if _, err := drain(b.stream); status.Code(err) != codes.Unavailable {
			t.Fatalf("stream of a dead server: %v, want UNAVAILABLE", err)
		}
		if err := c.probe(); status.Code(err) != codes.Unavailable {
			t.Fatalf("probe of a dead server: %v, want UNAVAILABLE", err)
		}
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second) // gRPC's own back-off
		if err := c.probe(); class(err) != "INVALID_HANDLE.SESSION_NOT_FOUND" {
			t.Fatalf("probe after the restart: %v", err)
		}
	})
}
