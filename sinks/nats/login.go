package nats

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/nats-io/nats.go"

	"sparkbridge/sinks"
)

// logins returns the keys of all ways of saying who we are that are in use.
func (c Config) logins() []string {
	var keys []string
	for _, way := range []struct {
		used bool
		key  string
	}{
		{c.urlHasUser(), "url"},
		{c.Token != "", "token"},
		{c.User != "" || c.Password != "", "user"},
		{c.NKeyFile != "", "nkey_file"},
		{c.CredsFile != "", "creds_file"},
	} {
		if way.used {
			keys = append(keys, way.key)
		}
	}
	return keys
}

func (c Config) urlHasUser() bool {
	for server := range strings.SplitSeq(c.URL, ",") {
		if u, err := parseServer(strings.TrimSpace(server)); err == nil && u.User != nil {
			return true
		}
	}
	return false
}

func (c Config) validateLogin() error {
	switch ways := c.logins(); {
	case len(ways) > 1:
		last := len(ways) - 1
		if ways[0] == "url" {
			ways[0] = "a user or token in url"
		}
		return fmt.Errorf("%s: is set beside %s; keep one of them", ways[last], strings.Join(ways[:last], " and "))
	case c.User != "" && c.Password == "":
		return errors.New("password: is missing; set it to the password of user")
	case c.User == "" && c.Password != "":
		return errors.New("user: is missing; set it to the user whose password is set")
	}
	return nil
}

// validateTransport keeps TLS from being asked for where it cannot be had.
func (c Config) validateTransport() error {
	if !c.TLS.Wanted() {
		return nil
	}
	for server := range strings.SplitSeq(c.URL, ",") {
		if u, err := parseServer(strings.TrimSpace(server)); err == nil && u.Scheme == "ws" {
			return fmt.Errorf("url: %q is without TLS, and tls is set; write wss://", masked(server))
		}
	}
	return nil
}

// access reads the files and returns what a connection needs to be let in.
func (c Config) access() ([]nats.Option, error) {
	var options []nats.Option
	if c.TLS.Wanted() {
		config, err := c.TLS.Config()
		if err != nil {
			return nil, err
		}
		options = append(options, nats.Secure(config))
	}
	switch {
	case c.Token != "":
		options = append(options, nats.Token(c.Token.Reveal()))
	case c.User != "":
		options = append(options, nats.UserInfo(c.User, c.Password.Reveal()))
	case c.CredsFile != "":
		user, err := c.readCreds()
		if err != nil {
			return nil, err
		}
		options = append(options, nats.UserJWTAndSeed(user.jwt, string(user.seed)))
	case c.NKeyFile != "":
		user, err := c.readNKey()
		if err != nil {
			return nil, err
		}
		options = append(options, nats.Nkey(user.public, user.sign))
	}
	return options, nil
}

// denials are the answers of a server that does not let us in.
var denials = []error{
	nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired,
	nats.ErrNkeysNotSupported,
}

// refused says why there is no connection, and what to do.
func (c Config) refused(err error) error {
	for _, denial := range denials {
		if errors.Is(err, denial) {
			return fmt.Errorf("connect to %s: %w (%w); %s", masked(c.URL), sinks.ErrDenied, err, c.correction())
		}
	}
	next := sinks.TLSAdvice(err)
	switch {
	case errors.Is(err, nats.ErrSecureConnWanted):
		next = "the server offers no TLS: leave tls out, or take a server that does"
	case next == "" && errors.Is(err, nats.ErrTLS): // it hung up before its reason could be read
		next = "the server may refuse our certificate: set tls.cert_file and tls.key_file to one that it takes"
	}
	if next != "" {
		next = "; " + next
	}
	return fmt.Errorf("connect to %s: %w%s", masked(c.URL), err, next)
}

// correction is the next step of somebody who was refused.
func (c Config) correction() string {
	ways := c.logins()
	if len(ways) == 0 {
		return "set token, user and password, nkey_file or creds_file to what the server wants"
	}
	return map[string]string{
		"url":        "set the user and password, or the token, in url",
		"token":      "correct token",
		"user":       "correct user and password",
		"nkey_file":  "let the server know the public key of nkey_file, or correct the file",
		"creds_file": "renew creds_file, or let the server know its account",
	}[ways[0]]
}

// unreached tells an error of the network from one that the server or our own
// configuration has made, among them those of files, which look like the network's.
func unreached(err error) bool {
	return errors.As(err, new(net.Error)) && !errors.As(err, new(*sinks.FileError)) && sinks.TLSAdvice(err) == "" && !errors.Is(err, nats.ErrTLS)
}
