package webhook

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode"
)

const (
	shownBody   = 200      // bytes of an error's body that are worth showing
	drainedBody = 64 << 10 // bytes that are read so that the connection can be used again
)

// StatusError is an answer that is no acknowledgement.
type StatusError struct {
	Code int
	// Body is the beginning of the answer's body, on one line.
	Body string
	// Location is where a redirect points, without what may be secret: as a rule its
	// path is that of the configured address.
	Location string

	url string
}

// Error names the address without its secrets, the status and what to do.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("post event to %s: answered %d %s", e.url, e.Code, http.StatusText(e.Code))
	if e.Location != "" {
		text += fmt.Sprintf(", a redirect to %s, which is not followed; set url to the final address", e.Location)
	}
	if e.Body != "" {
		text += ": " + e.Body
	}
	return text
}

// answer reads the response to its end, so that its connection can be used again.
func (s *Sink) answer(res *http.Response) error {
	head, _ := io.ReadAll(io.LimitReader(res.Body, shownBody)) // a body cut short is still worth showing
	_, _ = io.CopyN(io.Discard, res.Body, drainedBody)         // at worst the connection is closed
	if res.StatusCode/100 == 2 {
		return nil
	}
	failed := &StatusError{Code: res.StatusCode, Body: oneLine(head), url: s.shown}
	if res.StatusCode/100 == 3 {
		failed.Location = shownLocation(res)
	}
	return failed
}

// oneLine makes text of any bytes fit for a log line.
func oneLine(text []byte) string {
	printable := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(string(text), ""))
	return strings.Join(strings.Fields(printable), " ")
}

// shownLocation is the address of a redirect, absolute and without secrets.
func shownLocation(res *http.Response) string {
	to, err := res.Location()
	if err != nil {
		return ""
	}
	return masked(to)
}
