package connect

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sparkbridge/connect/connecttest"
	"sparkbridge/connect/sparkpb"
)

// A reader that waits for better weather has heard no silence: the bus may well be ours.
func TestWeatherDoesNotPassForATakenBus(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		broken := status.Error(codes.Unavailable, "connection reset")
		w.server.Inject(sparkpb.ExecutePlanMethod, connecttest.Fault{Late: true, Err: broken})
		w.server.FailNext(sparkpb.ExecutePlanMethod, 6, broken) // the next try is 51 s later then
		b := w.open()
		if holder, _ := w.job.Holder(); holder != b.OperationID() {
			t.Errorf("the bus is held by %q, ours is %q", holder, b.OperationID())
		}
	})
}

// Cancelled while it waits to try again, OpenBus finds out what came of its ADD.
func TestAnAddOfUnknownFateIsTidiedUp(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		broken := status.Error(codes.Unavailable, "connection reset")
		w.server.Inject(sparkpb.ExecutePlanMethod, connecttest.Fault{Late: true, Err: broken})
		w.server.FailNext(sparkpb.ExecutePlanMethod, 5, broken)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // the next try is 51 s after the last
		defer cancel()
		if _, err := w.s.OpenBus(ctx, BusOptions{Store: w.store}); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("open: %v", err)
		}
		if holder, taken := w.job.Holder(); taken {
			t.Errorf("the bus is held by %q", holder)
		}
	})
}

// An acknowledgement that a stream swallows must not pass for a taken bus: releasing
// its operation would leave a listener that nobody hears, for ever.
func TestASwallowedAcknowledgementIsAskedForAgain(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		w.server.Inject(sparkpb.ExecutePlanMethod, connecttest.Fault{Late: true, Hang: true})
		b := w.open()
		if holder, _ := w.job.Holder(); holder != b.OperationID() {
			t.Errorf("the bus is held by %q, ours is %q", holder, b.OperationID())
		}
	})
}

func TestOperationIsStoredBeforeItExists(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		w.store.hook = func(p ResumePoint) {
			if !p.Added && w.server.Adds() > 0 {
				t.Error("ADD was sent before its operation was stored")
			}
		}
		b := w.open()
		p := w.store.now()
		if p.OperationID != b.OperationID() || !p.Added || p.ServerSessionID != w.job.ServerSideID() || p.UserID != "etl" || p.SessionID != testSession {
			t.Errorf("stored %+v", p)
		}
		first := w.store.all[0]
		if first.OperationID != p.OperationID || first.Added || first.ServerSessionID != w.job.ServerSideID() {
			t.Errorf("stored first %+v", first)
		}
	})
}

func TestStoreThatFailsAddsNothing(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		full := errors.New("disk full")
		w.store.failing(full)
		if _, err := w.s.OpenBus(t.Context(), BusOptions{Store: w.store}); !errors.Is(err, full) {
			t.Errorf("OpenBus: %v", err)
		}
		if n := w.server.Adds(); n != 0 {
			t.Errorf("%d ADDs", n)
		}
	})
}

func TestCrashAtAnyPointLosesNothing(t *testing.T) {
	for name, kept := range map[string]int{"before the first Done": 0, "in the middle": 37, "at the end": 100} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
				b := w.open()
				w.emit(0, kept)
				w.expect(b, 0, kept, true)
				w.quiet(b, 2*time.Second)
				w.emit(kept, 100)
				w.expect(b, kept, 100, false)
				w.crash(b)
				w.emit(100, 110)
				time.Sleep(4 * time.Minute)
				again := w.open()
				if !again.Resumed() || again.OperationID() != b.OperationID() {
					t.Error("the operation was not resumed")
				}
				w.expect(again, kept, 110, true)
				if n := w.server.Adds(); n != 1 {
					t.Errorf("%d ADDs", n)
				}
			})
		})
	}
}

// The process dies at the moment of a save, before or after it took effect.
func TestCrashWhileTheBusIsAdded(t *testing.T) {
	for name, p := range map[string]func(*world) ResumePoint{
		"before ADD was sent": func(*world) ResumePoint { return ResumePoint{} },
		"before the answer was stored": func(w *world) ResumePoint {
			p := w.store.now()
			p.Added = false
			return p
		},
		"before anything was read": func(w *world) ResumePoint { return w.store.now() },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
				if point := p(w); point.OperationID == "" && name == "before ADD was sent" {
					w.store.Save(ResumePoint{UserID: "etl", SessionID: testSession, OperationID: "0c7a8d14-0000-4000-8000-000000000001"})
					b := w.open()
					w.emit(0, 3)
					w.expect(b, 0, 3, true)
					return
				}
				b := w.open()
				w.emit(0, 3)
				w.crash(b)
				w.store.Save(p(w))
				again := w.open()
				if again.OperationID() != b.OperationID() {
					t.Error("the operation was not resumed")
				}
				w.expect(again, 0, 3, true)
			})
		})
	}
}

func TestTakenBusIsLeftAlone(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		w.job.HoldBus()
		began := time.Now()
		_, err := w.s.OpenBus(t.Context(), BusOptions{Store: w.store})
		if !errors.Is(err, ErrBusTaken) || !IsDefinite(err) {
			t.Fatalf("OpenBus: %v", err)
		}
		if waited := time.Since(began); waited < 30*time.Second || waited > 35*time.Second {
			t.Errorf("decided after %v", waited)
		}
		if p := w.store.now(); p != (ResumePoint{}) {
			t.Errorf("stored %+v", p)
		}
		if w.server.Removes() != 0 {
			t.Error("the other client's listener was removed")
		}
		if released := releasedAll(w.server); len(released) == 0 {
			t.Error("the silent operation stays open")
		}
		w.job.RemoveBus()
		w.emit(0, 0)
		b := w.open()
		w.emit(0, 2)
		w.expect(b, 0, 2, true)
	})
}

// releasedAll are the operations that were released as a whole, the probes' among
// them once the real ones are taken out.
func releasedAll(s *connecttest.Server) []string {
	var ops []string
	added := map[string]bool{}
	for _, in := range connecttest.CallsOf[*sparkpb.ExecutePlanRequest](s) {
		added[in.GetOperationId()] = true
	}
	for _, in := range connecttest.CallsOf[*sparkpb.ReleaseExecuteRequest](s) {
		if in.GetReleaseAll() != nil && added[in.GetOperationId()] {
			ops = append(ops, in.GetOperationId())
		}
	}
	return ops
}

func TestSilenceDuringAnOutageIsNoAnswer(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		w.server.Inject(sparkpb.ExecutePlanMethod, connecttest.Fault{Hang: true})
		go func() {
			time.Sleep(5 * time.Second)
			w.server.Refuse(true)
			w.server.Disconnect()
			time.Sleep(10 * time.Minute)
			w.server.Refuse(false)
		}()
		b := w.open()
		w.emit(0, 1)
		w.expect(b, 0, 1, true)
	})
}

func TestSilenceThatAnOutageCutShortIsNoAnswer(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		w.server.Inject(sparkpb.ExecutePlanMethod, connecttest.Fault{Hang: true},
			connecttest.Fault{Before: func(context.Context) { time.Sleep(10 * time.Second) }})
		go func() {
			time.Sleep(16 * time.Second) // the server has just proved to be alive
			w.server.Refuse(true)
			w.server.Disconnect()
			time.Sleep(10 * time.Second)
			w.server.Refuse(false)
		}()
		b := w.open()
		w.emit(0, 1)
		w.expect(b, 0, 1, true)
	})
}

func TestDriverRestartWhileTheBusIsAdded(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		w.server.Inject(sparkpb.ExecutePlanMethod, connecttest.Fault{Hang: true})
		var restarted sync.WaitGroup
		restarted.Go(func() {
			time.Sleep(5 * time.Second)
			w.stop()
			w.restart()
		})
		if _, err := w.s.OpenBus(t.Context(), BusOptions{Store: w.store}); !errors.Is(err, ErrSessionNotFound) {
			t.Errorf("OpenBus: %v", err)
		}
		restarted.Wait()
		if _, ok := w.server.Session("etl", testSession); ok {
			t.Error("the session was created")
		}
	})
}

func TestFreshDriverMayTakeItsTime(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		w.server.Inject(sparkpb.ExecutePlanMethod, connecttest.Fault{Before: func(context.Context) { time.Sleep(25 * time.Second) }})
		b := w.open()
		w.emit(0, 1)
		w.expect(b, 0, 1, true)
	})
}

func TestLostAddIsRepeatedUnderTheSameId(t *testing.T) {
	for name, fault := range map[string]connecttest.Fault{
		"answer lost":  {Late: true, Err: status.Error(codes.Unavailable, "reset")},
		"request lost": {Err: status.Error(codes.Unavailable, "reset")},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
				w.server.Inject(sparkpb.ExecutePlanMethod, fault, fault, fault)
				b := w.open()
				w.emit(0, 2)
				w.expect(b, 0, 2, true)
				ids := map[string]bool{}
				for _, in := range connecttest.CallsOf[*sparkpb.ExecutePlanRequest](w.server) {
					ids[in.GetOperationId()] = true
				}
				if len(ids) != 1 {
					t.Errorf("ADD under %d ids", len(ids))
				}
			})
		})
	}
}

func TestAbandonedBusOfOursIsReplaced(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		b := w.open()
		w.emit(0, 3)
		w.expect(b, 0, 3, true)
		w.crash(b)
		time.Sleep(8 * time.Minute)
		again := w.open()
		if again.Resumed() || again.OperationID() == b.OperationID() {
			t.Error("an abandoned operation was resumed")
		}
		w.emit(3, 5)
		w.expect(again, 3, 5, true)
		if n := w.server.Removes(); n != 1 {
			t.Errorf("%d REMOVEs", n)
		}
	})
}

func TestAbandonedAddOfUnknownOutcomeRemovesNobody(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		w.job.HoldBus()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if _, err := w.s.OpenBus(ctx, BusOptions{Store: w.store, Keep: true}); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("OpenBus: %v", err)
		}
		if p := w.store.now(); p.OperationID == "" || p.Added || p.Silent {
			t.Fatalf("stored %+v", p)
		}
		time.Sleep(8 * time.Minute)
		if _, err := w.s.OpenBus(t.Context(), BusOptions{Store: w.store}); !errors.Is(err, ErrBusTaken) {
			t.Errorf("OpenBus: %v", err)
		}
		if w.server.Removes() != 0 {
			t.Error("the other client's listener was removed")
		}
	})
}

func TestRemovedBusOfOursIsNotRemovedAgain(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		b := w.open()
		w.emit(0, 3)
		if err := b.Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.crash(b)
		time.Sleep(8 * time.Minute)
		w.job.HoldBus()
		if _, err := w.s.OpenBus(t.Context(), BusOptions{Store: w.store}); !errors.Is(err, ErrBusTaken) {
			t.Errorf("OpenBus: %v", err)
		}
		if n := w.server.Removes(); n != 1 {
			t.Errorf("%d REMOVEs, want only that of Finish", n)
		}
	})
}

// A process that dies between its REMOVE and the record of it does not know whether
// the bus is another client's since.
func TestACrashWhileRemovingRemovesNobody(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		b := w.open()
		w.emit(0, 1)
		w.expect(b, 0, 1, true)
		died := ResumePoint{}
		w.store.hook = func(p ResumePoint) {
			if w.server.Removes() == 0 {
				died = p // what is stored when the REMOVE is sent
			}
		}
		if err := b.Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.crash(b)
		if !died.Removing || died.Removed || w.server.Removes() != 1 {
			t.Fatalf("before the REMOVE stored is %+v", died)
		}
		w.store.hook = nil
		if err := w.store.Save(died); err != nil {
			t.Fatal(err)
		}
		time.Sleep(8 * time.Minute)
		w.job.HoldBus()
		if _, err := w.s.OpenBus(t.Context(), BusOptions{Store: w.store}); !errors.Is(err, ErrBusTaken) {
			t.Errorf("OpenBus: %v", err)
		}
		if n := w.server.Removes(); n != 1 {
			t.Errorf("%d REMOVEs", n)
		}
	})
}

func TestTrimmedPositionOfOursIsReplaced(t *testing.T) {
	inWorld(t, connecttest.Options{RetryBufferBytes: 1000}, func(t *testing.T, w *world) {
		b := w.open()
		w.emit(0, 1)
		w.expect(b, 0, 1, true)
		w.emit(1, 200)
		w.expect(b, 1, 200, false)
		w.crash(b)
		again := w.open()
		if again.Resumed() {
			t.Error("a lost position was resumed")
		}
		w.emit(200, 202)
		w.expect(again, 200, 202, true)
	})
}

func TestDriverRestartBetweenTwoLives(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		b := w.open()
		w.emit(0, 3)
		w.expect(b, 0, 3, true)
		w.crash(b)
		w.stop()
		w.restart()
		if _, err := w.s.OpenBus(t.Context(), BusOptions{Store: w.store}); !errors.Is(err, ErrSessionNotFound) {
			t.Fatalf("OpenBus without the session: %v", err)
		}
		if _, ok := w.server.Session("etl", testSession); ok {
			t.Fatal("the session was created")
		}
		w.makeSession()
		again := w.open()
		if w.server.Removes() != 0 || again.Resumed() {
			t.Error("a new driver owes us no bus")
		}
		w.emit(3, 5)
		w.expect(again, 3, 5, true)
	})
}

func TestDriverRestartUnderOneProcess(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		for range 3 {
			b := w.open()
			w.emit(0, 2)
			w.expect(b, 0, 2, true)
			w.stop()
			w.restart()
			w.makeSession()
			w.expectEnd(b, ErrSessionChanged)
		}
	})
}

func TestPointOfAnotherSessionIsNotUsed(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		w.store.Save(ResumePoint{UserID: "etl", SessionID: "7f2c8a4e-7a0b-4c3d-9e1f-0123456789ab", OperationID: "x", Added: true})
		b := w.open()
		w.emit(0, 1)
		w.expect(b, 0, 1, true)
		if n := w.server.Reattaches(); n != 0 {
			t.Errorf("%d reattaches", n)
		}
	})
}

func TestMissingOrClosedSession(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		w.job.Close()
		if _, err := w.s.OpenBus(t.Context(), BusOptions{}); !errors.Is(err, ErrSessionClosed) {
			t.Errorf("closed session: %v", err)
		}
		w.stop()
		w.restart()
		if _, err := w.s.OpenBus(t.Context(), BusOptions{}); !errors.Is(err, ErrSessionNotFound) {
			t.Errorf("missing session: %v", err)
		}
		if _, ok := w.server.Session("etl", testSession); ok {
			t.Error("the session was created")
		}
	})
}

func TestCancelledOpenLeavesTheBusFree(t *testing.T) {
	for name, c := range map[string]struct {
		before func(*world)
		taken  bool
	}{
		"while the answer is on its way": {func(w *world) {
			w.server.Inject(sparkpb.ExecutePlanMethod, connecttest.Fault{Before: func(context.Context) { time.Sleep(2 * time.Second) }})
		}, false},
		"while another holds it": {func(w *world) { w.job.HoldBus() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
				c.before(w)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, err := w.s.OpenBus(ctx, BusOptions{Store: w.store}); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("OpenBus: %v", err)
				}
				time.Sleep(time.Minute)
				if _, taken := w.job.Holder(); taken != c.taken {
					t.Errorf("taken: %v, want %v", taken, c.taken)
				}
			})
		})
	}
}

func TestAddsOfOneSessionAreSerial(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		var (
			mu    sync.Mutex
			buses []*Bus
			taken int
			all   sync.WaitGroup
		)
		for range 5 {
			s := w.session()
			all.Go(func() {
				b, err := s.OpenBus(t.Context(), BusOptions{AddTimeout: time.Second})
				mu.Lock()
				defer mu.Unlock()
				if errors.Is(err, ErrBusTaken) {
					taken++
				} else {
					buses = append(buses, b)
				}
			})
		}
		all.Wait()
		if len(buses) != 1 || taken != 4 {
			t.Fatalf("%d buses and %d taken", len(buses), taken)
		}
		w.closeLater(buses[0])
		var at []time.Time
		for _, c := range w.server.Calls() {
			if in, ok := c.Request.(*sparkpb.ExecutePlanRequest); ok && in.GetOperationId() != "" {
				at = append(at, c.At)
			}
		}
		// The first is answered at once, each of the others waits out its silence.
		for i := 2; i < len(at); i++ {
			if gap := at[i].Sub(at[i-1]); gap < time.Second {
				t.Errorf("an ADD %v after the one before", gap)
			}
		}
	})
}

func TestNoBusOnSpark35(t *testing.T) {
	inWorld(t, connecttest.Options{Version: connecttest.Spark35}, func(t *testing.T, w *world) {
		open := func(what string) {
			t.Helper()
			if _, err := w.s.OpenBus(t.Context(), BusOptions{Store: w.store}); !errors.Is(err, ErrUnsupported) {
				t.Errorf("OpenBus %s: %v", what, err)
			}
			if p, _, err := w.store.Load(); p != (ResumePoint{}) || err != nil {
				t.Errorf("OpenBus %s: left %v, %v", what, p, err)
			}
		}
		open("first")
		began := w.store.all[0]
		open("again")
		if err := w.store.Save(began); err != nil {
			t.Fatal(err)
		}
		open("after a crash, which finds its id spent")
	})
}
