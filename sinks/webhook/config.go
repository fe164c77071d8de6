package webhook

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"time"

	"sparkbridge/sinks"
)

// DefaultTimeout bounds one request when the configuration does not.
const DefaultTimeout = 10 * time.Second

// Config says where to POST events. It never prints the credentials that the
// URL may hold, which with many services is all of its path.
type Config struct {
	// URL is the absolute http or https address that takes the events. A user and
	// password in it are sent as basic authentication.
	URL string `yaml:"url" required:"true" example:"https://example.org/events" doc:"Absolute http or https address that takes the events as POST requests."`
	// Timeout bounds one request, from the connection to the end of the answer.
	// Default 10s.
	Timeout time.Duration `yaml:"timeout" default:"10s" min:"1ms" doc:"Longest time for one request, answer included."`

	// Secret signs requests by Standard Webhooks, Secrets by several at once.
	Secret  sinks.Secret   `yaml:"secret" doc:"Signs each request by Standard Webhooks: whsec_ and the base64 of 24 to 64 bytes."`
	Secrets []sinks.Secret `yaml:"secrets" doc:"Instead of secret: several, each of which signs, so that the receiver can change from one to the next."`

	// Who we are to the receiver: one of these, or a user in URL, or nothing.
	Bearer  sinks.Secret            `yaml:"bearer" doc:"Sent as Authorization: Bearer."`
	Basic   Basic                   `yaml:"basic" doc:"A user and password for basic authentication."`
	Headers map[string]sinks.Secret `yaml:"headers" doc:"More headers of each request. Their values are never shown."`

	TLS   sinks.TLS `yaml:"tls" doc:"How an https connection is secured."`
	Batch Batch     `yaml:"batch" doc:"Several events in one request. Without it each event has its own, and up to eight queries are served at once."`

	// Format is the form of the requests, structured if empty.
	Format sinks.Format `yaml:"-"`
}

// Validate returns everything that is wrong, each with the field, the value and
// what to do. Credentials are left out of the values.
func (c Config) Validate() error {
	target, urlErr := c.parse()
	var timeoutErr error
	if c.Timeout < 0 {
		timeoutErr = fmt.Errorf("timeout: %s is negative; give a time such as 10s, or leave it out for the default", c.Timeout)
	}
	_, keysErr := c.keys()
	return errors.Join(urlErr, timeoutErr, keysErr, c.validateCredentials(target), c.validateHeaders(), c.validateTLS(target), c.Batch.validate(), c.validateFormat())
}

// CheckFiles reads the files and returns all that keeps them from being used.
func (c Config) CheckFiles() error { return c.TLS.CheckFiles() }

// validateFormat refuses a form in which several events cannot stand together.
func (c Config) validateFormat() error {
	if c.Batch.MaxEvents > 0 && c.Format.Or(sinks.FormatStructured) != sinks.FormatStructured {
		return fmt.Errorf("batch.max_events: a request of several events is always structured; leave out format: %s, or batch", c.Format)
	}
	return nil
}

func (c Config) validateTLS(target *url.URL) error {
	if c.TLS.Wanted() && target != nil && target.Scheme != "https" {
		return fmt.Errorf("url: %q is without TLS, and tls is set; write https://", masked(target))
	}
	return c.TLS.Validate()
}

// parse reads URL.
func (c Config) parse() (*url.URL, error) {
	if c.URL == "" {
		return nil, errors.New("url: is missing; give the address that takes the events, such as https://example.org/events")
	}
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil, fmt.Errorf("url: is not a URL (%w); check it for spaces and unescaped characters", withoutURL(err))
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("url: %q has scheme %q; write http://… or https://…", masked(u), u.Scheme)
	case u.Hostname() == "":
		return nil, fmt.Errorf("url: %q names no host; write https://host/path", masked(u))
	case !isPort(u.Port()):
		return nil, fmt.Errorf("url: %q has port %q; use a number from 1 to 65535", masked(u), u.Port())
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// isPort says whether a port can be connected to; none is the scheme's own.
func isPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}

// String shows the address without what may be secret.
func (c Config) String() string {
	u, err := c.parse()
	if err != nil {
		return "webhook"
	}
	return masked(u)
}

// LogValue is String, for slog.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// masked shows scheme and host. Paths and queries of webhooks are often secret.
func masked(u *url.URL) string {
	shown := (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
	if u.User != nil || len(u.Path) > 1 || u.RawQuery != "" || u.Opaque != "" {
		shown += "/…"
	}
	return shown
}

// withoutURL takes the address out of an error of net/url or net/http, whose
// texts repeat it.
func withoutURL(err error) error {
	var named *url.Error
	if errors.As(err, &named) {
		return named.Err
	}
	return err
}
