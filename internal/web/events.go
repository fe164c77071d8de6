package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"sparkbridge/listener"
	"sparkbridge/sinks"
	"sparkbridge/sinks/redact"
)

const (
	// beat is how often a stream without events sends something, so that proxies and
	// clients can tell it from a dead one.
	beat = 15 * time.Second
	// The most that is read from the journal at a time.
	readEvents, readBytes = 256, 4 << 20
)

// events streams the journal as server-sent events: id is the sequence, event the
// kind, data a CloudEvent in JSON.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	want, err := parseWish(r, s.o.Log, time.Now())
	if err != nil && !errors.As(err, new(unreadable)) {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var reader Reader
	if err == nil {
		reader, err = s.o.Log.Read(want.from)
	}
	if err != nil { // it names files, which are nobody's business
		s.o.Logger.Warn("a stream of events ended", "err", err)
		http.Error(w, "the journal cannot be read; the bridge's log says why", http.StatusInternalServerError)
		return
	}
	defer reader.Close() //nolint:errcheck // only read from
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()

	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	out := &stream{w: w, control: http.NewResponseController(w)}
	// The id alone is no event; it lets a client that has got none go on from here.
	if err := out.send(fmt.Appendf(nil, ": events of the journal\nid: %d\n\n", want.from-1)); err != nil {
		return
	}
	if err := pump(ctx, reader, want, out); err != nil && ctx.Err() == nil {
		s.o.Logger.Warn("a stream of events ended", "err", err)
	}
}

// pump sends what is wanted until ctx ends, the client has gone, or the journal
// cannot be read.
func pump(ctx context.Context, reader Reader, want wish, out *stream) error {
	for {
		waiting, cancel := context.WithTimeout(ctx, beat)
		events, err := reader.Next(waiting, readEvents, readBytes)
		quiet := waiting.Err() != nil
		cancel()
		var lost *sinks.LostError
		switch {
		case err == nil:
			err = out.send(frames(events, want))
		case errors.As(err, &lost):
			err = out.send(fmt.Appendf(nil, "event: lost\ndata: {\"from\":%d,\"to\":%d}\n\n", lost.From, lost.To))
		case quiet && ctx.Err() == nil:
			err = out.send([]byte(":\n\n"))
		}
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// frames are the wanted ones of the events, in the form of the stream, without
// credentials: who may look at the page need not be trusted with those of the jobs.
func frames(events []listener.Event, want wish) []byte {
	var b bytes.Buffer
	for i := range events {
		if !want.Wants(&events[i]) {
			continue
		}
		e := redact.Event(events[i])
		fmt.Fprintf(&b, "id: %d\nevent: %s\n", e.Sequence, e.Kind)
		for line := range strings.FieldsFuncSeq(string(sinks.Structured(&e)), func(r rune) bool { return r == '\n' || r == '\r' }) {
			b.WriteString("data: " + line + "\n")
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// stream is an answer that goes on.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// send gives a client that does not read a while, and then it is gone.
func (s *stream) send(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if err := s.control.SetWriteDeadline(time.Now().Add(writePatience)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("send events: %w", err)
	}
	if _, err := s.w.Write(b); err != nil {
		return fmt.Errorf("send events: %w", err)
	}
	if err := s.control.Flush(); err != nil {
		return fmt.Errorf("send events: %w", err)
	}
	return nil
}
