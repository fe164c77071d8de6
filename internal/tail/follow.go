package tail

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
)

const (
	// silence is how long a live stream may say nothing at all; it gives a sign of life
	// every 15 s.
	silence = 45 * time.Second
	// longestLine bounds a line of the stream: an event of 60 MiB, and what surrounds it.
	longestLine = 96 << 20
)

// Bridge is the API of a bridge that runs.
type Bridge struct {
	URL   string // without a path, such as http://127.0.0.1:4050
	Token string // empty for none
	// Query has what is wanted: kind, query, source, outcome, since, last.
	Query url.Values
	HTTP  *http.Client
	Log   *slog.Logger
}

// RefusedError says that the bridge answered, but not with events.
type RefusedError struct {
	Status int
	Answer string
}

// Error has the answer of the bridge, which says what to do.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the bridge answers %d: %s", e.Status, strings.TrimSpace(e.Answer))
}

// Follow hands out the events, each a CloudEvent in JSON, until ctx ends, which is no
// error. After a broken connection it goes on behind the last event; that there is nothing
// to connect to at first, a refusal, and an error of take end it.
func (b *Bridge) Follow(ctx context.Context, take func(event []byte) error) error {
	waits := backoff.NewExponentialBackOff(backoff.WithMaxInterval(10*time.Second), backoff.WithMaxElapsedTime(0))
	at := &position{}
	for !ended(ctx) {
		before := at.id
		err := b.stream(ctx, at, take)
		if ended(ctx) {
			break
		}
		if fatal := final(err, at); fatal != nil {
			return fatal
		}
		if at.id != before {
			waits.Reset()
		}
		b.Log.Warn("the connection to the bridge broke, trying again", "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(waits.NextBackOff()):
		}
	}
	return nil
}

// ended says that ctx has ended, which is no failure here.
func ended(ctx context.Context) bool { return ctx.Err() != nil }

// final is the error that the end of a stream means, nil if another stream may go on.
func final(err error, at *position) error {
	var fatal *stopError
	switch {
	case errors.As(err, &fatal):
		return fatal.err
	case errors.As(err, new(*RefusedError)), !at.connected && !cutOff(err):
		return err
	}
	return nil
}

// cutOff says that a connection that stood was broken: a bridge was there, and may come back.
func cutOff(err error) bool {
	var broken *net.OpError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &broken) && broken.Op != "dial"
}

// position is how far a stream was read.
type position struct {
	id        string // of the last event
	connected bool
}

// stopError is an error of whoever takes the events.
type stopError struct{ err error }

func (e *stopError) Error() string { return e.err.Error() }

// stream reads one connection to its end.
func (b *Bridge) stream(ctx context.Context, at *position, take func([]byte) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	alive := time.AfterFunc(silence, cancel)
	defer alive.Stop()
	answer, err := b.ask(ctx, at.id)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // only read from
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1024))
		return &RefusedError{answer.StatusCode, string(text)}
	}
	at.connected = true
	err = readStream(answer.Body, func() { alive.Reset(silence) }, func(m message) error {
		switch {
		case m.kind == "lost":
			b.Log.Warn("events were deleted by retention before they were read", "sequences", string(m.data))
			return nil
		case len(m.data) > 0:
			if err := take(m.data); err != nil {
				return &stopError{err}
			}
		}
		at.id = m.id
		return nil
	})
	return fmt.Errorf("read events: %w", err)
}

func (b *Bridge) ask(ctx context.Context, last string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(b.URL, "/")+"/api/v1/events?"+b.Query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "text/event-stream")
	if b.Token != "" {
		r.Header.Set("Authorization", "Bearer "+b.Token)
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	answer, err := b.HTTP.Do(r)
	var asked *url.Error
	if errors.As(err, &asked) {
		return nil, fmt.Errorf("ask the bridge for events: %w", asked.Err) // the rest of it is a long address
	}
	return answer, err
}

// message is one server-sent event.
type message struct {
	id, kind string
	data     []byte
}

// readStream reads server-sent events to the end of the stream, which is
// io.ErrUnexpectedEOF: it has none of its own.
func readStream(r io.Reader, alive func(), do func(message) error) error {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 0, 64<<10), longestLine)
	var m message
	for scanner.Scan() {
		alive()
		line := scanner.Bytes()
		if len(line) == 0 {
			if len(m.data) > 0 || m.id != "" {
				m.data = bytes.TrimSuffix(m.data, []byte("\n"))
				if err := do(m); err != nil {
					return err
				}
			}
			m = message{}
			continue
		}
		m.add(line)
	}
	if err := scanner.Err(); err != nil {
		return err
	}
	return io.ErrUnexpectedEOF
}

// add takes one line of an event. Comments and fields that are not known mean nothing.
func (m *message) add(line []byte) {
	field, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(field) {
	case "id":
		m.id = string(value)
	case "event":
		m.kind = string(value)
	case "data":
		m.data = append(append(m.data, value...), '\n')
	}
}
