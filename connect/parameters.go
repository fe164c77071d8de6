package connect

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// The parameters that Spark's clients know; any other is a metadata header.
var parameterNames = []string{
	"token", "use_ssl", "user_id", "user_agent", "session_id", "grpc_max_message_size",
	"grpc_keepalive_enabled", "grpc_keepalive_time_ms", "grpc_keepalive_timeout_ms", "grpc_keepalive_without_calls",
}

// Spark's clients refuse longer ones.
const maxUserAgentBytes = 2048

// setParameters takes what follows the slash: nothing, or ;key=value;….
func (r *Remote) setParameters(path string) error {
	if path == "" {
		return nil
	}
	parameters, ok := strings.CutPrefix(path, ";")
	if !ok {
		folder, _, _ := strings.Cut(path, ";")
		return &RemoteError{Part: "path", Value: folder, Problem: "must be empty", Next: "write sc://host:15002/;key=value"}
	}
	if i := strings.IndexAny(parameters, "?#"); i >= 0 {
		return &RemoteError{Part: "parameters", Problem: "hold a bare " + strconv.Quote(parameters[i:i+1]), Next: "write ? as %3F and # as %23"}
	}
	for i, p := range strings.Split(strings.TrimRight(parameters, ";"), ";") {
		if p == "" && parameters == strings.Repeat(";", len(parameters)) {
			return nil
		}
		if err := r.setParameter(i+1, p); err != nil {
			return err
		}
	}
	return nil
}

// setParameter takes one key=value. A piece that is none may be the rest of a
// token that holds a semicolon, so it is told by its number and never shown.
func (r *Remote) setParameter(n int, p string) error {
	key, value, ok := strings.Cut(p, "=")
	part := key
	if !slices.Contains(parameterNames, key) {
		part = "parameter " + strconv.Itoa(n)
	}
	switch {
	case !ok || key == "":
		return &RemoteError{Part: part, Problem: "is not key=value", Next: "write key=value, and ; in a value as %3B"}
	case value == "":
		return &RemoteError{Part: part, Problem: "has no value", Next: "give it one or leave it out"}
	case strings.Contains(value, "="):
		return &RemoteError{Part: part, Problem: "holds a second =", Next: "write = in a value as %3D"}
	}
	decoded, err := url.PathUnescape(value)
	if err != nil {
		return &RemoteError{Part: part, Problem: "has a % that is not followed by two hexadecimal digits", Next: "write % in a value as %25"}
	}
	return r.set(key, decoded)
}

func (r *Remote) set(key, value string) (err error) {
	switch key {
	case "token":
		r.Token = value
		return checkHeaderValue(key, value)
	case "use_ssl":
		r.sslWritten = true
		r.UseSSL, err = parseBool(key, value)
	case "user_id":
		r.UserID = value
		return checkText(key, value)
	case "user_agent":
		r.UserAgent = value
		return checkUserAgent(value)
	case "session_id":
		r.SessionID = value
		return checkSessionID(value)
	case "grpc_max_message_size":
		r.MaxMessageBytes, err = parsePositive(key, value)
	default:
		return r.setOther(key, value)
	}
	return err
}

func (r *Remote) setOther(key, value string) (err error) {
	if lower := strings.ToLower(key); lower != key && (slices.Contains(parameterNames, lower) || strings.HasPrefix(lower, "grpc_keepalive_")) {
		return &RemoteError{Part: key, Problem: "is not in lower case", Next: "write " + lower}
	}
	name, ok := strings.CutPrefix(key, "grpc_keepalive_")
	if !ok {
		return r.setHeader(strings.ToLower(key), value)
	}
	var n int
	switch name {
	case "enabled":
		var enabled bool
		enabled, err = parseBool(key, value)
		r.Keepalive.Disabled = !enabled
	case "time_ms":
		n, err = parsePositive(key, value)
		r.Keepalive.Time = time.Duration(n) * time.Millisecond
	case "timeout_ms":
		n, err = parsePositive(key, value)
		r.Keepalive.Timeout = time.Duration(n) * time.Millisecond
	case "without_calls":
		r.Keepalive.WithoutCalls, err = parseBool(key, value)
	default:
		err = &RemoteError{Part: key, Problem: "is not known", Next: "known are grpc_keepalive_enabled, _time_ms, _timeout_ms and _without_calls"}
	}
	return err
}

func (r *Remote) setHeader(key, value string) error {
	if strings.Trim(key, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" || strings.HasPrefix(key, "grpc-") {
		return &RemoteError{Part: "parameter name", Problem: "cannot be a metadata header", Next: "use letters, digits, '-', '_' and '.', and no leading grpc-"}
	}
	if err := checkHeaderValue(key, value); err != nil {
		return err
	}
	if r.Headers == nil {
		r.Headers = make(map[string]string)
	}
	r.Headers[key] = value
	return nil
}

// checkHeaderValue refuses what HTTP/2 would refuse later, on every call.
func checkHeaderValue(key, value string) error {
	for _, c := range []byte(value) {
		if c < ' ' || c > '~' {
			return &RemoteError{Part: key, Problem: "holds a character that no header can carry", Next: "use printable ASCII only"}
		}
	}
	return nil
}

func checkText(key, value string) error {
	if !utf8.ValidString(value) {
		return &RemoteError{Part: key, Value: value, Problem: "is not UTF-8", Next: "percent-encode it as UTF-8"}
	}
	return nil
}

func checkUserAgent(value string) error {
	if n := len(url.QueryEscape(value)); n > maxUserAgentBytes {
		return &RemoteError{Part: "user_agent", Problem: fmt.Sprintf("has %d bytes", n), Next: fmt.Sprintf("use at most %d", maxUserAgentBytes)}
	}
	return checkText("user_agent", value)
}

func checkSessionID(value string) error {
	if _, err := uuid.Parse(value); err != nil || len(value) != 36 {
		return &RemoteError{Part: "session_id", Value: value, Problem: "is not a UUID", Next: "use the form 01234567-89ab-cdef-0123-456789abcdef"}
	}
	return nil
}

func parseBool(key, value string) (bool, error) {
	switch strings.ToLower(value) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, &RemoteError{Part: key, Value: value, Problem: "is neither true nor false", Next: "use true or false"}
}

func parsePositive(key, value string) (int, error) {
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil || n <= 0 {
		return 0, &RemoteError{Part: key, Value: value, Problem: "is not a positive number", Next: "use a whole number from 1 to 2147483647"}
	}
	return int(n), nil
}
