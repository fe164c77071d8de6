package connect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sparkbridge/connect/connecttest"
	"sparkbridge/connect/sparkpb"
	"sparkbridge/listener"
)

func TestBusDeliversInOrderAndEnds(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		b := w.open()
		w.emit(0, 1000)
		w.expect(b, 0, 1000, true)
		w.emit(1000, 1003)
		w.finish(b)
		if _, taken := w.job.Holder(); taken {
			t.Error("the bus is still taken after Finish")
		}
		if p := w.store.now(); p != (ResumePoint{}) {
			t.Errorf("the store still holds %+v", p)
		}
		if _, err := b.Next(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("Next after the end: %v", err)
		}
		if adds, removes := w.server.Adds(), w.server.Removes(); adds != 1 || removes != 1 {
			t.Errorf("%d ADDs and %d REMOVEs, want one each", adds, removes)
		}
	})
}

func TestRequestsHarmNobody(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		b := w.open()
		if _, err := w.s.Active(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.finish(b)
		for _, c := range w.server.Calls() {
			switch in := c.Request.(type) {
			case *sparkpb.ExecutePlanRequest:
				if len(in.GetTags()) > 0 || !strings.HasPrefix(in.GetClientType(), "_SPARK_CONNECT_GO sparkbridge/") {
					t.Errorf("tags %v, client type %q", in.GetTags(), in.GetClientType())
				}
				if id := in.GetOperationId(); id != strings.ToLower(id) {
					t.Errorf("operation id %q is not in lower case", id)
				}
			case *sparkpb.ReleaseSessionRequest:
				t.Error("the session was released")
			}
		}
	})
}

func TestNextIsBounded(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		b := w.open()
		w.emit(0, 600)
		for n := 0; n < 600; {
			time.Sleep(time.Second)
			d, err := b.Next(t.Context())
			if err != nil || len(d.Events) > deliveryEvents {
				t.Fatalf("%d events, %v", len(d.Events), err)
			}
			n += len(d.Events)
		}
		// 3 MiB each: two do not fit into one delivery.
		large := `{"x":"` + strings.Repeat("a", 3<<20) + `"}`
		for range 5 {
			w.job.Idle(large)
		}
		for range 5 {
			time.Sleep(time.Second)
			d, err := b.Next(t.Context())
			if err != nil || len(d.Events) != 1 || string(d.Events[0].JSON) != large {
				t.Fatalf("%d events, %v", len(d.Events), err)
			}
		}
	})
}

func TestASlowReaderHoldsTheServerBack(t *testing.T) {
	inWorld(t, connecttest.Options{RetryBufferBytes: 64 << 10}, func(t *testing.T, w *world) {
		b := w.open()
		w.emit(0, 3000)
		time.Sleep(time.Minute)
		b.queue.mu.Lock()
		frames := len(b.queue.frames)
		b.queue.mu.Unlock()
		if frames != queueFrames {
			t.Errorf("%d responses were read ahead, want %d", frames, queueFrames)
		}
		w.expect(b, 0, 3000, true)
	})
}

func TestNextEndsWithContextAndLosesNothing(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		b := w.open()
		w.quiet(b, time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		w.emit(0, 3)
		time.Sleep(time.Second)
		if _, err := b.Next(ctx); !errors.Is(err, context.Canceled) {
			t.Fatalf("Next: %v", err)
		}
		w.expect(b, 0, 3, true)
	})
}

func TestIdleBusReattachesForEver(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		b := w.open()
		w.quiet(b, 24*time.Hour)
		if n := w.server.Reattaches(); n < 24*29 || n > 24*31 {
			t.Errorf("%d reattaches in a day, want one every two minutes", n)
		}
		w.emit(0, 2)
		w.expect(b, 0, 2, true)
		if n := w.server.Adds(); n != 1 {
			t.Errorf("%d ADDs", n)
		}
		if n := w.log.count("level=WARN"); n > 0 {
			t.Errorf("%d warnings about a healthy bus: %s", n, w.log.text)
		}
	})
}

func TestStreamsThatEndAtOnceAreNotReopenedInCircles(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		b := w.open()
		for range 1000 {
			w.server.Inject(sparkpb.ReattachExecuteMethod, connecttest.Fault{Cut: true})
		}
		w.server.Disconnect()
		w.quiet(b, 10*time.Minute)
		if n := w.server.Reattaches(); n > 30 {
			t.Errorf("%d reattaches in ten minutes", n)
		}
		if w.log.count("ended at once") == 0 {
			t.Error("nothing was said about it")
		}
	})
}

func TestTwelveMinutesOfOutage(t *testing.T) {
	// The server lives and keeps the operation: only the network is away.
	inWorld(t, connecttest.Options{DetachedTimeout: time.Hour}, func(t *testing.T, w *world) {
		b := w.open()
		w.emit(0, 10)
		w.expect(b, 0, 10, true)
		w.server.Refuse(true)
		w.server.Disconnect()
		w.emit(10, 20)
		w.quiet(b, 12*time.Minute)
		if n := w.log.count("trying again"); n < 10 || n > 20 {
			t.Errorf("%d warnings in twelve minutes, want one a minute", n)
		}
		w.server.Refuse(false)
		back := time.Now()
		w.expect(b, 10, 20, true)
		if waited := time.Since(back); waited > 5*time.Second {
			t.Errorf("it took %v to notice that the server is back", waited)
		}
		if w.log.count("answers again") != 1 {
			t.Error("nobody was told that it is over")
		}
	})
}

// A server that was frozen can be connected to all the time; that it is back shows by
// the answer to a question.
func TestAnAnswerElsewhereEndsTheWait(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		b := w.open()
		w.server.FailNext(sparkpb.ReattachExecuteMethod, 5, status.Error(codes.Unavailable, "overloaded"))
		w.server.Disconnect()
		w.emit(0, 1)
		w.quiet(b, 30*time.Second) // the next try is 51 s after the last
		if err := w.s.Probe(t.Context()); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		w.expect(b, 0, 1, true)
		if waited := time.Since(began); waited > time.Second {
			t.Errorf("read on after %v", waited)
		}
	})
}

func TestWeatherOnTheStream(t *testing.T) {
	for name, fault := range map[string]connecttest.Fault{
		"proxy error":     {Err: status.Error(codes.Internal, "stream terminated by RST_STREAM")},
		"balancer":        {Err: status.Error(codes.Unavailable, "unexpected HTTP status code received from server: 503")},
		"cut after one":   {Cut: true, Frames: 1, Err: status.Error(codes.Unavailable, "reset")},
		"not a server":    {Err: status.Error(codes.Unimplemented, "unknown service")},
		"disconnected":    {Cut: true, Frames: 2},
		"plain exception": {Err: status.Error(codes.Unknown, "")},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
				b := w.open()
				for range 8 {
					w.server.Inject(sparkpb.ReattachExecuteMethod, fault)
				}
				w.emit(0, 5)
				w.expect(b, 0, 5, true)
				w.server.Disconnect()
				w.emit(5, 50)
				w.expect(b, 5, 50, true)
			})
		})
	}
}

func TestServersWishToWaitIsRespected(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		b := w.open()
		w.server.FailNext(sparkpb.ReattachExecuteMethod, 1, connecttest.RetryAfter(w.server.Error("SOME.CLASS", "busy"), 90*time.Second))
		began := time.Now()
		w.server.Disconnect()
		w.emit(0, 1)
		w.expect(b, 0, 1, true)
		if waited := time.Since(began); waited < 90*time.Second {
			t.Errorf("asked again after %v", waited)
		}
	})
}

func TestSilentStreamIsReplaced(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		b := w.open()
		w.server.Inject(sparkpb.ReattachExecuteMethod, connecttest.Fault{Hang: true})
		w.server.Disconnect() // the reattach after it hangs: no response, no clean end
		time.Sleep(time.Second)
		w.emit(0, 3)
		began := time.Now()
		w.expect(b, 0, 3, true)
		if waited := time.Since(began); waited > silenceLimit+time.Second {
			t.Errorf("it took %v", waited)
		}
	})
}

func TestFrozenConnectionIsReplaced(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		b := w.open()
		other := w.session()
		w.server.Freeze()
		w.emit(0, 3)
		// What polls beside the bus finds out first.
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := other.Active(ctx); err != nil {
			t.Fatalf("Active: %v", err)
		}
		w.expect(b, 0, 3, true)
		w.server.Freeze()
		w.emit(3, 6)
		began := time.Now()
		w.expect(b, 3, 6, true) // nobody polls: the bus finds out by itself
		if waited := time.Since(began); waited > silenceLimit+time.Minute {
			t.Errorf("it took %v", waited)
		}
		w.server.Disconnect() // its end of the frozen connections
	})
}

func TestFrozenConnectionIsReplacedByImpatientQuestions(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		b := w.open()
		w.server.Freeze()
		w.emit(0, 3)
		began := time.Now()
		for range silentCalls {
			asking, cancel := context.WithTimeout(t.Context(), callTime-time.Millisecond)
			if _, err := w.s.Active(asking); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Active on a frozen connection: %v", err)
			}
			cancel()
		}
		w.expect(b, 0, 3, true)
		if waited := time.Since(began); waited > (silentCalls+1)*callTime {
			t.Errorf("it took %v", waited)
		}
		w.server.Disconnect() // its end of the frozen connections
	})
}

func TestRivalIsMetWithPatience(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		b := w.open()
		for range 1000 {
			w.server.Inject(sparkpb.ReattachExecuteMethod, connecttest.Fault{Err: w.server.Error("INVALID_CURSOR.DISCONNECTED", "another")})
		}
		w.server.Disconnect()
		w.quiet(b, 10*time.Minute)
		if n := w.server.Reattaches(); n > 30 {
			t.Errorf("%d reattaches in ten minutes", n)
		}
		if w.log.count("another client reads the operation") == 0 {
			t.Error("the rival was not mentioned")
		}
	})
}

func TestDefiniteEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*world)
		want error
	}{
		"session closed by its job": {func(w *world) { w.job.Close() }, ErrBusRemoved},
		"removed by another":        {func(w *world) { w.job.RemoveBus() }, ErrBusRemoved},
		"driver gone":               {func(w *world) { w.stop(); w.restart() }, ErrSessionNotFound},
		"driver restarted":          {func(w *world) { w.stop(); w.restart(); w.makeSession() }, ErrSessionChanged},
		"token refused": {func(w *world) {
			w.server.FailNext(sparkpb.ReattachExecuteMethod, 1, status.Error(codes.Unauthenticated, "Invalid authentication token"))
			w.server.Disconnect()
		}, ErrUnauthenticated},
		"abandoned": {func(w *world) {
			w.server.FailNext(sparkpb.ReattachExecuteMethod, 1, w.server.Error("INVALID_HANDLE.OPERATION_ABANDONED", ""))
			w.server.Disconnect()
		}, ErrOperationAbandoned},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
				b := w.open()
				w.emit(0, 2)
				w.expect(b, 0, 2, true)
				c.end(w)
				w.expectEnd(b, c.want)
			})
		})
	}
}

func TestLargeEvents(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		b := w.open()
		large := `{"exception":"` + strings.Repeat("x", 20<<20) + `"}`
		w.job.Terminated(large)
		d := listener.Delivery{}
		for len(d.Events) == 0 {
			var err error
			if d, err = b.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if string(d.Events[0].JSON) != large {
			t.Error("the event was changed")
		}
	})
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		r := w.s.remote
		r.MaxMessageBytes = 1 << 20
		w.s = w.sessionOf(r)
		b := w.open()
		w.job.Terminated(`{"exception":"` + strings.Repeat("x", 2<<20) + `"}`)
		w.expectEnd(b, ErrTooLarge)
		if err := b.Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, taken := w.job.Holder(); taken {
			t.Error("our listener still holds the bus")
		}
	})
}

// An operation that goes on with a message which is too large is of no use to the next
// bus.
func TestABusThatDiedOfALargeMessageIsOpenedAnew(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		small := w.s.remote
		small.MaxMessageBytes = 1 << 20
		w.s = w.sessionOf(small)
		b := w.open()
		w.job.Terminated(`{"exception":"` + strings.Repeat("x", 2<<20) + `"}`)
		w.expectEnd(b, ErrTooLarge)
		w.crash(b)
		w.s = w.sessionOf(small)
		next := w.open()
		if holder, _ := w.job.Holder(); next.Resumed() || holder != next.OperationID() || holder == b.OperationID() {
			t.Errorf("the bus is held by %q, the new one is %q, resumed: %v", holder, next.OperationID(), next.Resumed())
		}
	})
}

func TestPositionIsStoredBeforeItIsReleased(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		b := w.open()
		w.store.hook = func(p ResumePoint) {
			for _, id := range w.server.ReleasedUntil(p.OperationID) {
				if id == p.LastResponseID {
					t.Errorf("%s was released before it was stored", id)
				}
			}
		}
		for i := range 50 {
			w.emit(i*40, i*40+40)
			w.expect(b, i*40, i*40+40, true)
			time.Sleep(100 * time.Millisecond)
		}
		w.quiet(b, 5*time.Second)
		w.store.hook = nil
		stored := map[string]bool{}
		for _, p := range w.store.all {
			stored[p.LastResponseID] = true
		}
		released := w.server.ReleasedUntil(b.OperationID())
		for _, id := range released {
			if !stored[id] {
				t.Errorf("released %s, which was never stored", id)
			}
		}
		if len(released) < 7 || len(released) > 20 {
			t.Errorf("%d releases for 2000 events in five seconds, want a few", len(released))
		}
		all := w.job.Emitted()
		if last := all[len(all)-1].ResponseID; released[len(released)-1] != last || w.store.now().LastResponseID != last {
			t.Error("the last position was not stored and released while the bus was idle")
		}
	})
}

func TestWithoutDoneNothingIsReleased(t *testing.T) {
	inWorld(t, connecttest.Options{RetryBufferBytes: 64 << 10}, func(t *testing.T, w *world) {
		b := w.open()
		w.emit(0, 2000)
		w.expect(b, 0, 2000, false)
		if n := len(w.server.ReleasedUntil(b.OperationID())); n > 0 {
			t.Errorf("%d releases", n)
		}
	})
}

func TestStoreThatFailsReleasesNothing(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		b := w.open()
		full := errors.New("disk full")
		w.store.failing(full)
		w.emit(0, 1)
		var failed error
		for got := 0; got == 0 || failed == nil; {
			d, err := b.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got += len(d.Events)
			failed = errors.Join(failed, b.Done(t.Context(), d))
		}
		if !errors.Is(failed, full) {
			t.Errorf("Done: %v", failed)
		}
		w.silence(b, time.Minute)
		if n := len(w.server.ReleasedUntil(b.OperationID())); n > 0 {
			t.Errorf("%d releases of what was not stored", n)
		}
		w.store.failing(nil)
		w.silence(b, 3*time.Second)
		if n := len(w.server.ReleasedUntil(b.OperationID())); n != 1 {
			t.Errorf("%d releases after the store has recovered", n)
		}
	})
}

// silence lets Next wait for d.
func (w *world) silence(b *Bus, d time.Duration) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), d)
	defer cancel()
	if got, err := b.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		w.t.Fatalf("got %v, %v, want silence", got, err)
	}
}

func TestFinishWithoutReadingTheRestKeepsIt(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		b := w.open()
		w.emit(0, 5)
		w.expect(b, 0, 5, true)
		w.emit(5, 9)
		if err := b.Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		again := w.open()
		if !again.Resumed() {
			t.Fatal("the rest was given up")
		}
		w.expect(again, 5, 9, true)
		w.expectEnd(again, io.EOF)
		third := w.open()
		w.emit(9, 10)
		w.expect(third, 9, 10, true)
	})
}

// While the rest of a finished bus is read, the slot may be another client's.
func TestABusIsFinishedOnce(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		b := w.open()
		w.emit(0, 3)
		if err := b.Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.crash(b)
		w.job.HoldBus()
		for range 2 {
			again := w.open()
			if err := again.Finish(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := again.Close(); err != nil {
				t.Fatal(err)
			}
		}
		last := w.open()
		w.expect(last, 0, 3, true)
		w.expectEnd(last, io.EOF)
		if n := w.server.Removes(); n != 1 {
			t.Errorf("%d REMOVEs, want only that of the first Finish", n)
		}
	})
}

func TestTheRestIsForgottenOnlyOnceItIsKept(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		b := w.open()
		w.quiet(b, 2*time.Second)
		w.emit(0, 3)
		if err := b.Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.expect(b, 0, 3, false)
		if _, err := b.Next(t.Context()); !errors.Is(err, io.EOF) {
			t.Fatalf("Next: %v", err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		again := w.open()
		w.expect(again, 0, 3, true)
		w.expectEnd(again, io.EOF)
	})
}

func TestFinishDuringAnOutage(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		b := w.open()
		w.server.Refuse(true)
		w.server.Disconnect()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		if err := b.Finish(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Finish: %v", err)
		}
		if err := b.Close(); err != nil || time.Since(began) > 13*time.Second {
			t.Errorf("Close: %v, after %v", err, time.Since(began))
		}
		w.server.Refuse(false)
		w.emit(0, 2)
		w.expect(w.open(), 0, 2, true)
	})
}

func TestALostAnswerToRemoveIsNotRepeatedOnTheNextOwner(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		b := w.open()
		w.server.Inject(sparkpb.ExecutePlanMethod, connecttest.Fault{Late: true, Err: status.Error(codes.Unavailable, "reset")})
		if err := b.Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := w.server.Removes(); n != 1 {
			t.Errorf("%d REMOVEs", n)
		}
		w.expectEnd(b, io.EOF)
	})
}

func TestManySessionsShareAConnection(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		var buses []*Bus
		var jobs []*connecttest.Session
		for i := range 20 {
			r := w.s.remote
			r.SessionID = fmt.Sprintf("6f2c8a4e-7a0b-4c3d-9e1f-%012d", i)
			job, err := w.server.CreateSession("etl", r.SessionID)
			if err != nil {
				t.Fatal(err)
			}
			b, err := w.sessionOf(r).OpenBus(t.Context(), BusOptions{})
			if err != nil {
				t.Fatal(err)
			}
			w.closeLater(b)
			buses, jobs = append(buses, b), append(jobs, job)
		}
		if n := len(w.client.links); n != 1 {
			t.Errorf("%d connections for one server", n)
		}
		w.server.Disconnect()
		for i, b := range buses {
			w.job = jobs[i]
			w.emit(0, 3)
			w.expect(b, 0, 3, true)
		}
	})
}
