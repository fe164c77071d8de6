package bridge

import (
	"context"
	"log/slog"

	"sparkbridge/internal/control"
	"sparkbridge/internal/journal"
)

// serveCommands answers commands on the socket in the journal's folder until ctx ends.
// Without it the bridge works all the same.
func serveCommands(ctx context.Context, dir string, j *journal.Journal, outlets []*outlet, log *slog.Logger) {
	if dir == "" {
		return
	}
	socket, err := control.Listen(ctx, dir)
	if err != nil {
		log.Warn("no commands can be given to this bridge", "err", err)
		return
	}
	desk := &control.Desk{Journal: j, Kept: func() (control.Kept, error) {
		kept, err := j.State().Kept()
		return control.Kept(kept), err
	}}
	for _, o := range outlets {
		desk.Sinks = append(desk.Sinks, control.Sink{Name: o.name, Letters: o.letters, Replays: o.replays, Wake: o.worker.Wake})
	}
	if err := desk.Serve(ctx, socket, log); err != nil {
		log.Error("no commands can be given to this bridge any more", "err", err)
	}
}
