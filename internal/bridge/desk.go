package bridge

import (
	"context"
	"log/slog"

	"sparkbridge/internal/control"
	"sparkbridge/internal/journal"
	"sparkbridge/internal/web"
)

// newDesk is what commands can ask for: dead letters and replays, and without a token
// all that HTTP serves.
func newDesk(j *journal.Journal, outlets []*outlet, server *web.Server) *control.Desk {
	desk := &control.Desk{Journal: j, Rest: server.Open(), Kept: func() (control.Kept, error) {
		kept, err := j.State().Kept()
		return control.Kept(kept), err
	}}
	for _, o := range outlets {
		desk.Sinks = append(desk.Sinks, control.Sink{Name: o.name, Letters: o.letters, Replays: o.replays, Wake: o.worker.Wake})
	}
	return desk
}

// serveSocket answers commands on the socket in the journal's folder until ctx ends.
// Without it the bridge works all the same.
func serveSocket(ctx context.Context, dir string, desk *control.Desk, log *slog.Logger) {
	if dir == "" {
		return
	}
	socket, err := control.Listen(ctx, dir)
	if err != nil {
		log.Warn("no commands can be given to this bridge", "err", err)
		return
	}
	if err := desk.Serve(ctx, socket, log); err != nil {
		log.Error("no commands can be given to this bridge any more", "err", err)
	}
}
