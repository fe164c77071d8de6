package main

import (
	"io"
	"log/slog"
	"os"

	"github.com/lmittmann/tint"
	"golang.org/x/term"

	"sparkbridge/configs"
)

// newLogger makes the program's one logger: text in color for people at a
// terminal, JSON for what collects logs, unless the configuration says which.
func newLogger(w io.Writer, c configs.Log) *slog.Logger {
	terminal := isTerminal(w)
	if c.Format == configs.LogJSON || c.Format == configs.LogAuto && !terminal {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: c.Level.Level(), ReplaceAttr: readable}))
	}
	return slog.New(tint.NewTextHandler(w, &tint.Options{Level: c.Level.Level(), NoColor: !terminal || os.Getenv("NO_COLOR") != ""}))
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// readable writes durations as 1.5s; slog's JSON has nanoseconds without saying so.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
