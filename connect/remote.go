package connect

import (
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	defaultPort            = 15002
	defaultMaxMessageBytes = 128 << 20

	// gRPC servers in Java allow one ping in five minutes and end the connection of
	// a client that sends more, unless they are told otherwise. Spark 4.0 to 4.2
	// tells them nothing.
	defaultKeepaliveTime    = 5*time.Minute + 10*time.Second
	defaultKeepaliveTimeout = 20 * time.Second

	mask = "***"
)

// Remote is where and as whom to reach Spark Connect: a parsed connection string.
// Make one with ParseRemote; its String hides the credentials.
type Remote struct {
	Host string // lower case; an IPv6 address without brackets
	Port int

	// UseSSL says whether to speak TLS. A credential turns it on except to loopback.
	UseSSL bool
	// TLS is how connections are secured with UseSSL; nil trusts whom this machine
	// trusts. It is no part of the string.
	TLS TLS
	// Token is sent as "authorization: Bearer <token>".
	Token string

	UserID    string // empty where the string names none
	SessionID string // a UUID as it was written; empty where the string names none
	UserAgent string // empty: the program's own

	// MaxMessageBytes bounds one message that is received.
	MaxMessageBytes int
	// Keepalive is how the connection is pinged.
	Keepalive Keepalive
	// Headers are sent with each call; the keys are lower case.
	Headers map[string]string

	sslWritten bool
}

// Keepalive says how to ping a connection on which nothing arrives. Pings more
// often than the server allows end the connection.
type Keepalive struct {
	Disabled     bool
	Time         time.Duration // silence before a ping
	Timeout      time.Duration // wait for the answer
	WithoutCalls bool          // ping while no call is open
}

// RemoteError says which part of a connection string cannot be used and why. It
// never holds a credential.
type RemoteError struct {
	Part    string // as it is called in Spark's documentation: host, port, use_ssl, …
	Value   string // empty where it must not or need not be shown
	Problem string
	Next    string // what to write instead
}

func (e *RemoteError) Error() string {
	value := ""
	if e.Value != "" {
		value = " " + strconv.Quote(e.Value)
	}
	return fmt.Sprintf("connection string: %s%s %s; %s", e.Part, value, e.Problem, e.Next)
}

// ParseRemote reads a Spark Connect connection string,
// sc://host[:port]/;key=value;…, as Spark's own clients do: values are
// percent-decoded, an IPv6 address stands in brackets, the port is 15002 unless
// given, and keys that Spark does not know are metadata headers. An error is a
// *RemoteError.
//
// A token implies TLS. Only to loopback it may travel in clear text.
func ParseRemote(s string) (Remote, error) {
	rest, ok := strings.CutPrefix(s, "sc://")
	if !ok {
		return Remote{}, &RemoteError{Part: "scheme", Problem: "is not sc://", Next: "write sc://host:15002"}
	}
	authority, path, _ := strings.Cut(rest, "/")
	r := Remote{
		Port:            defaultPort,
		MaxMessageBytes: defaultMaxMessageBytes,
		Keepalive:       Keepalive{Time: defaultKeepaliveTime, Timeout: defaultKeepaliveTimeout},
	}
	if err := r.setAuthority(authority); err != nil {
		return Remote{}, err
	}
	if err := r.setParameters(path); err != nil {
		return Remote{}, err
	}
	if err := r.secure(); err != nil {
		return Remote{}, err
	}
	return r, nil
}

// setAuthority takes host[:port], a host being a name, an IPv4 address, or an
// IPv6 address in brackets.
func (r *Remote) setAuthority(authority string) error {
	if strings.ContainsAny(authority, ";?#") {
		return &RemoteError{Part: "host", Problem: "is followed by parameters without a slash", Next: "write sc://host:15002/;key=value"}
	}
	if strings.Contains(authority, "@") {
		return &RemoteError{Part: "host", Problem: "must not hold a user or password", Next: "give the user as ;user_id=… and a token as ;token=…"}
	}
	host, port, err := splitHostPort(authority)
	if err != nil {
		return err
	}
	r.Host = host
	if port == "" {
		return nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return &RemoteError{Part: "port", Value: port, Problem: "is not a port", Next: "use a number from 1 to 65535"}
	}
	r.Port = int(n)
	return nil
}

func splitHostPort(authority string) (host, port string, err error) {
	if bracketed, ok := strings.CutPrefix(authority, "["); ok {
		return splitBracketed(bracketed, authority)
	}
	host, port, _ = strings.Cut(authority, ":")
	switch {
	case host == "":
		return "", "", &RemoteError{Part: "host", Problem: "is missing", Next: "write sc://host:15002"}
	case strings.Contains(port, ":"):
		return "", "", &RemoteError{Part: "host", Value: authority, Problem: "holds more than one colon", Next: "put an IPv6 address in brackets: sc://[::1]:15002"}
	case len(host) > 253 || strings.Trim(host, hostCharacters) != "":
		return "", "", &RemoteError{Part: "host", Value: host, Problem: "is not a host name", Next: "use letters, digits, '.', '-' and '_', or an IP address"}
	}
	return strings.ToLower(host), port, nil
}

const hostCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"

func splitBracketed(rest, authority string) (host, port string, err error) {
	host, port, closed := strings.Cut(rest, "]")
	// A zone is written with its percent sign encoded, as in every URI.
	addr, parseErr := netip.ParseAddr(strings.Replace(host, "%25", "%", 1))
	switch {
	case !closed || parseErr != nil || !addr.Is6():
		return "", "", &RemoteError{Part: "host", Value: authority, Problem: "is not an IPv6 address in brackets", Next: "write sc://[::1]:15002"}
	case port == "":
		return addr.String(), "", nil
	case !strings.HasPrefix(port, ":"):
		return "", "", &RemoteError{Part: "port", Value: port, Problem: "does not follow a colon", Next: "write sc://[::1]:15002"}
	}
	return addr.String(), port[1:], nil
}

// secure settles whether TLS is spoken.
func (r *Remote) secure() error {
	credential := r.Token != "" || r.Headers["authorization"] != ""
	if !credential || r.UseSSL || r.loopback() {
		return nil
	}
	if r.sslWritten {
		return &RemoteError{Part: "use_ssl", Value: "false", Problem: "would send the token in clear text", Next: "leave use_ssl out or set it to true"}
	}
	r.UseSSL = true
	return nil
}

func (r *Remote) loopback() bool {
	if addr, err := netip.ParseAddr(r.Host); err == nil {
		return addr.Unmap().IsLoopback()
	}
	return r.Host == "localhost"
}

// WithToken is the remote with another token, under the same rule: it is an error
// where the token would travel in clear text. An empty token changes nothing.
func (r Remote) WithToken(token string) (Remote, error) {
	if token == "" {
		return r, nil
	}
	r.Headers = maps.Clone(r.Headers)
	if err := r.set("token", token); err != nil {
		return Remote{}, err
	}
	if err := r.secure(); err != nil {
		return Remote{}, err
	}
	return r, nil
}

// Address is host:port, an IPv6 host in brackets.
func (r Remote) Address() string { return net.JoinHostPort(r.Host, strconv.Itoa(r.Port)) }

// String is the connection string without credentials: the token and the values
// of headers are masked.
func (r Remote) String() string {
	var b strings.Builder
	b.WriteString("sc://" + strings.Replace(r.Address(), "%", "%25", 1) + "/")
	write := func(key, value string) { b.WriteString(";" + key + "=" + value) }
	if r.UseSSL || r.sslWritten {
		write("use_ssl", strconv.FormatBool(r.UseSSL))
	}
	for _, p := range [][2]string{{"user_id", r.UserID}, {"session_id", r.SessionID}, {"user_agent", r.UserAgent}} {
		if p[1] != "" {
			write(p[0], strings.ReplaceAll(url.QueryEscape(p[1]), "+", "%20"))
		}
	}
	if r.MaxMessageBytes != defaultMaxMessageBytes {
		write("grpc_max_message_size", strconv.Itoa(r.MaxMessageBytes))
	}
	for _, key := range slices.Sorted(maps.Keys(r.Headers)) {
		write(key, mask)
	}
	if r.Token != "" {
		write("token", mask)
	}
	return b.String()
}

// GoString hides the credentials from %#v.
func (r Remote) GoString() string { return "connect.Remote(" + r.String() + ")" }

// LogValue hides the credentials from logs.
func (r Remote) LogValue() slog.Value { return slog.StringValue(r.String()) }

// MarshalText hides the credentials from JSON and YAML.
func (r Remote) MarshalText() ([]byte, error) { return []byte(r.String()), nil }
