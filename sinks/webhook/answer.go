package webhook

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"sparkbridge/sinks"
)

const (
	shownBody   = 200      // bytes of an error's body that are worth showing
	readBody    = 4 << 10  // bytes that are looked through for echoes, so that none is cut at its end
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
	if next := nextSteps[e.Code]; next != "" {
		text += "; " + next
	}
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
	head, _ := io.ReadAll(io.LimitReader(res.Body, readBody)) // a body cut short is still worth showing
	_, _ = io.CopyN(io.Discard, res.Body, drainedBody)        // at worst the connection is closed
	if res.StatusCode/100 == 2 {
		return nil
	}
	failed := &StatusError{Code: res.StatusCode, Body: s.said(head), url: s.shown}
	if res.StatusCode/100 == 3 {
		failed.Location = shownLocation(res)
	}
	return classify(failed, res.Header.Get("Retry-After"))
}

// nextSteps is what to do about answers that say something of the bridge itself.
var nextSteps = map[int]string{
	http.StatusUnauthorized:      "correct bearer, basic, headers or secret",
	http.StatusForbidden:         "let the bridge post there, or correct bearer, basic, headers or secret",
	http.StatusNotFound:          "correct url, or start what answers there",
	http.StatusGone:              "the receiver wants no more events, so nothing is sent any more: take this sink out, or correct url or what answers there and start the bridge anew",
	http.StatusProxyAuthRequired: "put the user and password of the proxy into HTTPS_PROXY or HTTP_PROXY",
}

// classify tells what will pass or can be put right from the refusal of an event
// for what it is: of the codes that blame the request, those are retried that
// depend on who asks, when, and where. 410 is, by Standard Webhooks, the wish to get
// no more events.
func classify(failed *StatusError, retryAfter string) error {
	switch code := failed.Code; {
	case code == http.StatusGone:
		return sinks.Stopped(failed)
	case code/100 != 4, nextSteps[code] != "", code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests:
		if after := parseRetryAfter(retryAfter); after > 0 {
			return &sinks.RetryAfterError{After: after, Err: failed}
		}
		return failed
	}
	return sinks.Permanent(failed)
}

// longestPause is the longest time that a receiver is left alone at its own wish.
const longestPause = time.Hour

// parseRetryAfter reads the header Retry-After, seconds or a date (RFC 9110); 0
// where it says nothing that can be read.
func parseRetryAfter(text string) time.Duration {
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, longestPause)
	}
	if date, err := http.ParseTime(text); err == nil {
		return min(max(0, time.Until(date)), longestPause)
	}
	return 0
}

// said is the beginning of what a receiver has said, without our credentials.
func (s *Sink) said(body []byte) string {
	text := s.echoes.Replace(oneLine(body))
	return strings.ToValidUTF8(text[:min(len(text), shownBody)], "")
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
