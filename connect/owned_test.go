package connect

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"sparkbridge/connect/connecttest"
	"sparkbridge/connect/sparkpb"
)

// remote is a connection string of the server, with parameters.
func (w *world) remote(parameters string) Remote {
	w.t.Helper()
	r, err := ParseRemote("sc://127.0.0.1:15002/;" + parameters)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func TestASessionOfOurOwnEndsWithUs(t *testing.T) {
	for _, named := range []bool{false, true} {
		inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
			r := w.remote("user_id=me")
			if named {
				r.SessionID = uuid.NewString()
			}
			s, err := w.client.Open(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			made, exists := w.server.Session("me", s.ID())
			if !exists || named && s.ID() != r.SessionID {
				t.Fatalf("session %s was not made", s.ID())
			}
			made.SetQueries(connecttest.Query{ID: "q", RunID: "r"})
			for range 2 {
				if err := s.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			}
			if !made.Queries()[0].Stopped {
				t.Error("its query goes on")
			}
			again := w.sessionOf(w.remote("user_id=me;session_id=" + s.ID()))
			if err := again.Probe(t.Context()); !errors.Is(err, ErrSessionClosed) {
				t.Errorf("the session after Close: %v", err)
			}
			if n := len(connecttest.CallsOf[*sparkpb.ReleaseSessionRequest](w.server)); n != 1 {
				t.Errorf("%d releases", n)
			}
		})
	}
}

// A session that was there before is its maker's to end.
func TestASessionOfAnotherGoesOn(t *testing.T) {
	for name, join := range map[string]func(*Client, *testing.T, Remote) (*Session, error){
		"attached": func(c *Client, t *testing.T, r Remote) (*Session, error) { return c.Attach(t.Context(), r) },
		"opened":   func(c *Client, t *testing.T, r Remote) (*Session, error) { return c.Open(t.Context(), r) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
				w.job.SetQueries(connecttest.Query{ID: "q", RunID: "r"})
				s, err := join(w.client, t, w.s.remote)
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				if err := w.s.Probe(t.Context()); err != nil || w.job.Queries()[0].Stopped {
					t.Errorf("the job's session: %v, %+v", err, w.job.Queries())
				}
				if n := len(connecttest.CallsOf[*sparkpb.ReleaseSessionRequest](w.server)); n != 0 {
					t.Errorf("%d releases of a session that is not ours", n)
				}
			})
		})
	}
}

func TestAttachMakesNothing(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		id := uuid.NewString()
		if _, err := w.client.Attach(t.Context(), w.remote("user_id=me;session_id="+id)); !errors.Is(err, ErrSessionNotFound) {
			t.Errorf("attach to a session that is not there: %v", err)
		}
		if _, exists := w.server.Session("me", id); exists {
			t.Error("the session was made")
		}
		for parameters, part := range map[string]string{"user_id=me": "session_id", "session_id=" + id: "user_id"} {
			if _, err := w.client.Attach(t.Context(), w.remote(parameters)); err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("attach with %s: %v, want one that names %s", parameters, err, part)
			}
		}
		w.job.Close()
		if _, err := w.client.Open(t.Context(), w.s.remote); !errors.Is(err, ErrSessionClosed) {
			t.Errorf("open a session whose id is spent: %v", err)
		}
	})
}

// Spark before 4.0 cannot close a session. What we have started in it does not go on.
func TestCloseStopsQueriesOfAnOldServer(t *testing.T) {
	inWorld(t, connecttest.Options{Version: connecttest.Spark35}, func(t *testing.T, w *world) {
		s, err := w.client.Open(t.Context(), w.remote("user_id=me"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.ReadStream().Format("rate").Load().WriteStream().Format("noop").Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		made, _ := w.server.Session("me", s.ID())
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if !made.Queries()[0].Stopped {
			t.Error("its query goes on")
		}
	})
}

func TestCloseIsBoundedInAnOutage(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		s, err := w.client.Open(t.Context(), w.remote("user_id=me"))
		if err != nil {
			t.Fatal(err)
		}
		w.stop()
		began := time.Now()
		if err := s.Close(); err == nil {
			t.Error("nobody has closed the session, and Close says nothing of it")
		}
		if took := time.Since(began); took > closeTime {
			t.Errorf("Close took %v", took)
		}
		w.restart()
	})
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		s, err := w.client.Open(t.Context(), w.remote("user_id=me"))
		if err != nil {
			t.Fatal(err)
		}
		w.stop()
		w.restart() // another driver, which knows nothing of the session
		if err := s.Close(); err != nil {
			t.Errorf("Close of a session that is gone: %v", err)
		}
	})
}

// A session of ours that somebody has made again at another driver is theirs.
func TestCloseSparesASessionThatWasMadeAgain(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		id := uuid.NewString()
		s, err := w.client.Open(t.Context(), w.remote("user_id=me;session_id="+id))
		if err != nil {
			t.Fatal(err)
		}
		w.stop()
		w.restart()
		if _, err := w.server.CreateSession("me", id); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if n := len(connecttest.CallsOf[*sparkpb.ReleaseSessionRequest](w.server)); n != 0 {
			t.Errorf("%d releases of a session that is not ours any more (known as %q)", n, s.ServerSideID())
		}
	})
}
