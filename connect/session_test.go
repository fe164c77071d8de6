package connect

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sparkbridge/connect/connecttest"
	"sparkbridge/connect/sparkpb"
	"sparkbridge/listener"
)

func TestProbeNeverCreates(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		if err := w.s.Probe(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.stop()
		w.restart()
		fresh := w.session()
		if err := fresh.Probe(t.Context()); !errors.Is(err, ErrSessionNotFound) {
			t.Errorf("missing session: %v", err)
		}
		if _, err := fresh.Active(t.Context()); !errors.Is(err, ErrSessionNotFound) {
			t.Errorf("Active of a missing session: %v", err)
		}
		if _, ok := w.server.Session("etl", testSession); ok {
			t.Fatal("the session was created")
		}
		if err := fresh.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, ok := w.server.Session("etl", testSession); !ok {
			t.Fatal("the session was not created")
		}
		job, _ := w.server.Session("etl", testSession)
		if fresh.ServerSideID() != job.ServerSideID() {
			t.Errorf("server-side id %q, want %q", fresh.ServerSideID(), job.ServerSideID())
		}
		job.Close()
		if err := fresh.Probe(t.Context()); !errors.Is(err, ErrSessionClosed) {
			t.Errorf("closed session: %v", err)
		}
	})
}

func TestActive(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		if got, err := w.s.Active(t.Context()); err != nil || len(got) != 0 {
			t.Errorf("Active = %v, %v, want none", got, err)
		}
		w.job.SetQueries(
			connecttest.Query{ID: "a", RunID: "b", Name: "orders"},
			connecttest.Query{ID: "c", RunID: "d"},
			connecttest.Query{ID: "e", RunID: "f", Stopped: true},
		)
		want := []listener.Query{{ID: "a", RunID: "b", Name: "orders"}, {ID: "c", RunID: "d"}}
		if got, err := w.s.Active(t.Context()); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Active = %v, %v, want %v", got, err, want)
		}
	})
}

// Whoever asks gives each question little time and asks again; that is still one failure.
func TestAnOutageIsToldOnceAMinuteHoweverOftenItIsAsked(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		w.server.Refuse(true)
		w.server.Disconnect()
		for began := time.Now(); time.Since(began) < 5*time.Minute; {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			if _, err := w.s.Active(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Active of a server that is away: %v", err)
			}
			cancel()
		}
		if n := w.log.count("trying again"); n < 5 || n > 7 {
			t.Errorf("%d warnings in five minutes, want one a minute", n)
		}
		w.server.Refuse(false)
		if _, err := w.s.Active(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := w.log.count("answers again"); n != 1 {
			t.Errorf("told %d times that it is over, want once", n)
		}
	})
}

func TestActiveTellsAnotherDriver(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		if _, err := w.s.Active(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.stop()
		w.restart()
		if _, err := w.s.Active(t.Context()); !errors.Is(err, ErrSessionNotFound) {
			t.Errorf("Active before the job is back: %v", err)
		}
		w.makeSession()
		if _, err := w.s.Active(t.Context()); !errors.Is(err, ErrSessionChanged) {
			t.Errorf("Active in a new driver: %v", err)
		}
		w.s.Forget()
		if _, err := w.s.Active(t.Context()); err != nil {
			t.Errorf("Active after Forget: %v", err)
		}
	})
}

func TestQuestionsAreAskedUntilAnswered(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		w.server.FailNext(sparkpb.ReleaseExecuteMethod, 5, status.Error(codes.Internal, "proxy"))
		w.server.Inject(sparkpb.ExecutePlanMethod, connecttest.Fault{Hang: true}, connecttest.Fault{Cut: true, Frames: 1, Err: status.Error(codes.Unavailable, "")})
		if _, err := w.s.Active(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.server.Refuse(true)
		w.server.Disconnect()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := w.s.Probe(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Probe: %v", err)
		}
		w.server.Refuse(false)
	})
}

func TestToken(t *testing.T) {
	inWorld(t, connecttest.Options{Token: "right"}, func(t *testing.T, w *world) {
		if err := w.s.Probe(t.Context()); !errors.Is(err, ErrUnauthenticated) {
			t.Errorf("without a token: %v", err)
		}
		for token, want := range map[string]error{"right": nil, "wrong": ErrUnauthenticated} {
			r, err := w.s.remote.WithToken(token)
			if err != nil {
				t.Fatal(err)
			}
			s := w.sessionOf(r)
			if err := s.Probe(t.Context()); !errors.Is(err, want) {
				t.Errorf("token %s: %v", token, err)
			}
			if b, err := s.OpenBus(t.Context(), BusOptions{}); !errors.Is(err, want) {
				t.Errorf("token %s: OpenBus: %v", token, err)
			} else if err == nil {
				w.closeLater(b)
			}
		}
	})
}

func TestBadID(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		r := w.s.remote
		r.SessionID = "not-a-uuid"
		if err := w.sessionOf(r).Create(t.Context()); !errors.Is(err, ErrBadID) {
			t.Errorf("Create: %v", err)
		}
	})
}

func TestConnectionLivesAsLongAsItsSessions(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		a, b := w.session(), w.session()
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		if err := a.Close(); err != nil { // twice harms nobody
			t.Fatal(err)
		}
		if err := b.Probe(t.Context()); err != nil {
			t.Errorf("the connection has gone with the first session: %v", err)
		}
		if err := errors.Join(b.Close(), w.s.Close()); err != nil {
			t.Fatal(err)
		}
		if n := len(w.client.links); n != 0 {
			t.Errorf("%d connections are left", n)
		}
	})
}

func TestSessionWithoutAnIDGetsOne(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		r := w.s.remote
		r.SessionID = ""
		s := w.sessionOf(r)
		if err := checkSessionID(s.ID()); err != nil {
			t.Fatal(err)
		}
		if err := s.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestHeadersAreSent(t *testing.T) {
	inWorld(t, connecttest.Options{Token: "x"}, func(t *testing.T, w *world) {
		r := w.s.remote
		r.Headers = map[string]string{"authorization": "Bearer x"}
		if err := w.sessionOf(r).Probe(t.Context()); err != nil {
			t.Errorf("Probe: %v", err)
		}
	})
}
