package connect

import (
	"context"
	"errors"
	"testing"
	"time"

	"sparkbridge/connect/connecttest"
)

// Nothing waits in a session that this process has closed, and nothing is asked in it.
func TestNothingWaitsInAClosedSession(t *testing.T) {
	for name, wait := range map[string]func(context.Context, *StreamingQuery) error{
		"await": func(ctx context.Context, q *StreamingQuery) error { return q.AwaitTermination(ctx) },
		"all":   func(ctx context.Context, q *StreamingQuery) error { return q.ProcessAllAvailable(ctx) },
		"any":   func(ctx context.Context, q *StreamingQuery) error { return q.s.Streams().AwaitAnyTermination(ctx) },
		"drain": func(ctx context.Context, q *StreamingQuery) error { return q.Drain(ctx, DrainOptions{}) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
				other := w.session() // shares the connection
				q := w.run(connecttest.Query{DataAvailable: true})
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				began := time.Now()
				time.AfterFunc(time.Minute, func() {
					if err := w.s.Close(); err != nil {
						t.Error(err)
					}
				})
				if err := wait(ctx, q); !errors.Is(err, ErrSessionClosed) {
					t.Errorf("got %v", err)
				}
				if took := time.Since(began); took > time.Minute+2*farewell {
					t.Errorf("took %v", took)
				}
				asked := len(w.server.Calls())
				for name, ask := range map[string]func(context.Context) error{
					"stop":     q.Stop,
					"status":   func(ctx context.Context) error { _, err := q.Status(ctx); return err },
					"probe":    w.s.Probe,
					"listener": func(ctx context.Context) error { return w.s.Streams().AddListener(ctx, nil) },
				} {
					if err := ask(ctx); !errors.Is(err, ErrSessionClosed) {
						t.Errorf("%s after Close: %v", name, err)
					}
				}
				if n := len(w.server.Calls()); n != asked {
					t.Errorf("%d calls after Close", n-asked)
				}
				if err := other.Probe(ctx); err != nil {
					t.Errorf("another session on the connection: %v", err)
				}
			})
		})
	}
}

// The last session on a connection takes it along; that is no weather to be waited out.
func TestTheLastSessionOfAConnection(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		q := w.run(connecttest.Query{DataAvailable: true})
		time.AfterFunc(time.Minute, func() {
			if err := w.s.Close(); err != nil {
				t.Error(err)
			}
		})
		began := time.Now()
		if err := q.AwaitTermination(t.Context()); !errors.Is(err, ErrSessionClosed) || time.Since(began) > 2*time.Minute {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
	})
}
