package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strconv"

	"golang.org/x/sys/unix"
)

// ErrNotRunning says that no bridge answers in a folder.
var ErrNotRunning = errors.New("no bridge is running there")

// maxAnswer bounds what a bridge may answer.
const maxAnswer = 1 << 30

// Client asks the bridge that runs on a journal's folder.
type Client struct {
	dir  string
	http *http.Client
}

// Dial returns a client; whether a bridge is there shows when it is asked.
func Dial(dir string) *Client { return &Client{dir, HTTP(dir)} }

// URL is where an HTTP client of a bridge asks; the socket says which bridge.
const URL = "http://bridge"

// HTTP returns a client that reaches the bridge which runs on a journal's folder, by
// its socket and under URL. Where none answers its error is ErrNotRunning.
func HTTP(dir string) *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return call(ctx, dir)
	}}}
}

func call(ctx context.Context, dir string) (net.Conn, error) {
	path, free, err := reachable(dir)
	if err != nil {
		return nil, err
	}
	defer free()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ECONNREFUSED):
		return nil, fmt.Errorf("%w: nobody answers in %s; start it, or name its configuration with -c", ErrNotRunning, dir)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%w: only the user that the bridge in %s runs as may ask it by its socket", err, dir)
	}
	return conn, err
}

// Kept tells what the bridge keeps of its sinks.
func (c *Client) Kept(ctx context.Context) (kept Kept, err error) {
	err = c.ask(ctx, http.MethodGet, "kept", nil, &kept)
	return kept, err
}

// Letters lists the dead letters of a sink, of all sinks if its name is empty.
func (c *Client) Letters(ctx context.Context, sink string) (list []Letter, err error) {
	err = c.ask(ctx, http.MethodGet, "letters?sink="+url.QueryEscape(sink), nil, &list)
	return list, err
}

// Letter returns one letter with its event.
func (c *Client) Letter(ctx context.Context, sink string, sequence uint64) (l Letter, err error) {
	err = c.ask(ctx, http.MethodGet, of(sink)+"letters/"+strconv.FormatUint(sequence, 10), nil, &l)
	return l, err
}

// Retry marks letters to be tried once more, all of them where none is named, and
// returns which.
func (c *Client) Retry(ctx context.Context, sink string, sequences []uint64) ([]uint64, error) {
	return c.selected(ctx, of(sink)+"letters/retry", sequences)
}

// Drop deletes letters, all of them where none is named, and returns which.
func (c *Client) Drop(ctx context.Context, sink string, sequences []uint64) ([]uint64, error) {
	return c.selected(ctx, of(sink)+"letters/drop", sequences)
}

func (c *Client) selected(ctx context.Context, path string, sequences []uint64) ([]uint64, error) {
	var done selection
	err := c.ask(ctx, http.MethodPost, path, selection{sequences, len(sequences) == 0}, &done)
	return done.Sequences, err
}

// Replay asks for a range once more.
func (c *Client) Replay(ctx context.Context, sink string, want Range) (r Replay, err error) {
	err = c.ask(ctx, http.MethodPost, of(sink)+"replays", want, &r)
	return r, err
}

// Replays lists what is not finished.
func (c *Client) Replays(ctx context.Context, sink string) (list []Replay, err error) {
	err = c.ask(ctx, http.MethodGet, of(sink)+"replays", nil, &list)
	return list, err
}

// Cancel ends a replay; what of it was delivered stays so.
func (c *Client) Cancel(ctx context.Context, sink, id string) (r Replay, err error) {
	err = c.ask(ctx, http.MethodDelete, of(sink)+"replays/"+url.PathEscape(id), nil, &r)
	return r, err
}

func of(sink string) string { return "sinks/" + url.PathEscape(sink) + "/" }

// ask sends a request and reads its answer.
func (c *Client) ask(ctx context.Context, method, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, method, URL+"/control/v1/"+path, bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	res, err := c.http.Do(req)
	if errors.Is(err, ErrNotRunning) {
		return unwrapped(err)
	}
	if err != nil {
		return fmt.Errorf("ask the bridge in %s: %w", c.dir, unwrapped(err))
	}
	defer res.Body.Close() //nolint:errcheck // only read from
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read the bridge's answer: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		var p problem
		if json.Unmarshal(answer, &p) != nil || p.Error == "" {
			p.Error = "the bridge answers " + res.Status
		}
		return errors.New(p.Error)
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("read the bridge's answer: %w", err)
	}
	return nil
}

// unwrapped leaves out the address, which is no real one.
func unwrapped(err error) error {
	var named *url.Error
	if errors.As(err, &named) {
		return named.Err
	}
	return err
}
