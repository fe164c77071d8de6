package webhook

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"sparkbridge/sinks"
)

// Basic is a user for basic authentication.
type Basic struct {
	User     string       `yaml:"user" example:"bridge" doc:"The user."`
	Password sinks.Secret `yaml:"password" doc:"The password of user."`
}

// validateCredentials wants at most one way of saying who we are.
func (c Config) validateCredentials(target *url.URL) error {
	var ways, headers []string
	if target != nil && target.User != nil {
		ways = append(ways, "url")
	}
	if c.Bearer != "" {
		ways = append(ways, "bearer")
	}
	if c.Basic != (Basic{}) {
		ways = append(ways, "basic")
	}
	for name := range c.Headers {
		if http.CanonicalHeaderKey(name) == "Authorization" {
			headers = append(headers, "headers."+name)
		}
	}
	slices.Sort(headers)
	ways = append(ways, headers...)
	switch {
	case len(ways) > 1:
		last := len(ways) - 1
		if ways[0] == "url" {
			ways[0] = "a user in url"
		}
		return fmt.Errorf("%s: is set beside %s; keep one of them", ways[last], strings.Join(ways[:last], " and "))
	case c.Basic != (Basic{}) && c.Basic.User == "":
		return errors.New("basic.user: is missing; set it to the user whose password is set")
	case c.Basic != (Basic{}) && strings.Contains(c.Basic.User, ":"):
		return errors.New("basic.user: holds a colon, which basic authentication cannot send; use bearer or headers")
	case !httpguts.ValidHeaderFieldValue(c.Bearer.Reveal()):
		return errors.New("bearer: holds a line break or another control character; see that the whole text is the token")
	}
	return nil
}

// ours are the headers that the sink or HTTP itself sets.
var ours = map[string]bool{
	"Content-Type": true, "Content-Length": true, "Content-Encoding": true, "Transfer-Encoding": true, "Connection": true,
	"Host": true, "Te": true, "Trailer": true, "Upgrade": true, "User-Agent": true,
	"Webhook-Id": true, "Webhook-Timestamp": true, "Webhook-Signature": true,
}

func (c Config) validateHeaders() error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			problems = append(problems, fmt.Errorf("headers: %q is not the name of a header; use letters, digits and -", name))
		case ours[http.CanonicalHeaderKey(name)]:
			problems = append(problems, fmt.Errorf("headers.%s: is set by the bridge itself; leave it out", name))
		case !httpguts.ValidHeaderFieldValue(c.Headers[name].Reveal()):
			problems = append(problems, fmt.Errorf("headers.%s: holds a line break or another control character; leave it out", name))
		}
	}
	return errors.Join(problems...)
}

// header is what every request carries of the configuration. A user in the
// address is sent by net/http itself.
func (c Config) header() http.Header {
	header := make(http.Header, len(c.Headers)+4)
	switch {
	case c.Bearer != "":
		header.Set("Authorization", "Bearer "+c.Bearer.Reveal())
	case c.Basic.User != "":
		pair := c.Basic.User + ":" + c.Basic.Password.Reveal()
		header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(pair)))
	}
	for name, value := range c.Headers {
		header.Set(name, value.Reveal())
	}
	return header
}
