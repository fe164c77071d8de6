package connecttest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sparkbridge/connect/connecttest"
	"sparkbridge/connect/sparkpb"
)

func TestFaultsAreTakenInOrder(t *testing.T) {
	inBubble(t, connecttest.Options{}, func(t *testing.T, s *connecttest.Server, c *client) {
		c.create()
		s.FailNext(sparkpb.ReleaseExecuteMethod, 2, status.Error(codes.Unavailable, "no healthy upstream"))
		s.Inject(sparkpb.ReleaseExecuteMethod, connecttest.Fault{}, connecttest.Fault{Err: s.Error("INVALID_HANDLE.SESSION_CLOSED", "Over.")})
		want := []codes.Code{codes.Unavailable, codes.Unavailable, codes.OK, codes.Internal, codes.OK}
		for i, code := range want {
			if err := c.probe(); status.Code(err) != code {
				t.Errorf("probe %d: %v, want %v", i, err, code)
			}
		}
	})
}

func TestRetryInfoIsBesideTheErrorInfo(t *testing.T) {
	inBubble(t, connecttest.Options{}, func(t *testing.T, s *connecttest.Server, c *client) {
		s.FailNext(sparkpb.ReleaseExecuteMethod, 1, connecttest.RetryAfter(s.Error("SOME.CLASS", "Later."), 7*time.Second))
		err := c.probe()
		expect(t, "probe", err, "SOME.CLASS")
		for _, detail := range status.Convert(err).Details() {
			if retry, ok := detail.(*errdetails.RetryInfo); ok && retry.GetRetryDelay().AsDuration() == 7*time.Second {
				return
			}
		}
		t.Errorf("no RetryInfo of 7 s in %v", status.Convert(err).Details())
	})
}

func TestHangLastsUntilTheClientGivesUp(t *testing.T) {
	inBubble(t, connecttest.Options{}, func(t *testing.T, s *connecttest.Server, c *client) {
		s.Inject(sparkpb.AnalyzePlanMethod, connecttest.Fault{Hang: true})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		if _, err := c.rpc.AnalyzePlan(ctx, c.analyze()); status.Code(err) != codes.DeadlineExceeded || time.Since(began) != time.Hour {
			t.Errorf("hung call ended after %v with %v", time.Since(began), err)
		}
		expect(t, "probe", c.probe(), "INVALID_HANDLE.SESSION_NOT_FOUND")
	})
}

func TestLateFaultLosesTheAnswerOnly(t *testing.T) {
	inBubble(t, connecttest.Options{}, func(t *testing.T, s *connecttest.Server, c *client) {
		lost := connecttest.Fault{Late: true, Err: status.Error(codes.Unavailable, "connection reset")}
		s.Inject(sparkpb.AnalyzePlanMethod, lost)
		s.Inject(sparkpb.ExecutePlanMethod, lost)
		if _, err := c.rpc.AnalyzePlan(t.Context(), c.analyze()); status.Code(err) != codes.Unavailable {
			t.Fatal(err)
		}
		expect(t, "probe", c.probe(), "")
		operation, stream := c.add(t.Context())
		if frames, err := drain(stream); status.Code(err) != codes.Unavailable || len(frames) != 0 {
			t.Fatalf("lost ADD answered %v, %v", frames, err)
		}
		if holder, _ := session(t, s, c).Holder(); holder != operation {
			t.Errorf("the lost ADD does not hold the bus, %q does", holder)
		}
	})
}

func TestCutStreamGoesOnByReattach(t *testing.T) {
	inBubble(t, connecttest.Options{}, func(t *testing.T, s *connecttest.Server, c *client) {
		reset := status.Error(codes.Unavailable, "connection reset")
		s.Inject(sparkpb.ExecutePlanMethod, connecttest.Fault{Cut: true, Frames: 1, Err: reset})
		operation, stream := c.add(t.Context())
		frames, err := drain(stream)
		if status.Code(err) != codes.Unavailable || len(frames) != 1 {
			t.Fatalf("cut after one frame: %v, %v", frames, err)
		}
		sent := session(t, s, c).Idle(`{}`)
		b := &bus{client: c, operation: operation, stream: c.reattach(t.Context(), operation, frames[0].GetResponseId())}
		if got := b.event(); got.GetResponseId() != sent.ResponseID {
			t.Errorf("after the cut came %v, want %v", got, sent)
		}
	})
}

func TestFrozenConnectionSwallows(t *testing.T) {
	inBubble(t, connecttest.Options{}, func(t *testing.T, s *connecttest.Server, c *client) {
		c.create()
		s.Freeze()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := c.rpc.AnalyzePlan(ctx, c.analyze()); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("call over a frozen connection: %v", err)
		}
		fresh := newClient(t, s.Dial(t))
		fresh.session = c.session
		expect(t, "probe over a new connection", fresh.probe(), "")
	})
}

func TestBrokenAndRefusedConnections(t *testing.T) {
	inBubble(t, connecttest.Options{}, func(t *testing.T, s *connecttest.Server, c *client) {
		b := c.open()
		s.Refuse(true)
		s.Disconnect()
		if _, err := drain(b.stream); status.Code(err) != codes.Unavailable {
			t.Errorf("stream of a broken connection: %v", err)
		}
		if err := c.probe(); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("probe while connections are refused: %v", err)
		}
		s.Refuse(false)
		eventually(t, "connection is back", func() bool { return c.probe() == nil })
		sent := session(t, s, c).Idle(`{}`)
		b.stream = c.reattach(t.Context(), b.operation, b.last)
		if got := b.event(); got.GetResponseId() != sent.ResponseID {
			t.Errorf("after the break came %v, want %v", got, sent)
		}
	})
}

func TestClientLeftOpenFailsTheTest(t *testing.T) {
	inBubble(t, connecttest.Options{}, func(t *testing.T, s *connecttest.Server, c *client) {
		c.open()
		if n := s.Leftovers(); n != 2 {
			t.Errorf("an open bus leaves %d calls and connections, want 2", n)
		}
	})
}
