package nats

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// Config says where events go.
type Config struct {
	// URL names the server, or several of one cluster with commas between them.
	// It may hold a user and password, or a token; errors and logs never show them.
	URL string `yaml:"url" required:"true" example:"nats://localhost:4222" doc:"Address of the server, or of several of one cluster with commas between them."`
	// Subject is the template of an event's subject, see sinks.ParseTemplate.
	Subject string `yaml:"subject" default:"spark.{source}.{query}.{kind}" doc:"Template of an event's subject, with {source}, {query}, {kind}, {query_id}, {run_id} and {labels.name}."`
	// Headers are templates too.
	Headers map[string]string `yaml:"headers" doc:"Headers of your own, each a template like subject."`
	// JetStream asks for an acknowledgement from a stream for each event. Without
	// it an event counts as delivered when the server has read it, whether or not
	// anybody listens.
	JetStream bool `yaml:"jetstream" default:"true" doc:"true: a stream acknowledges each event. false: plain NATS, nothing is kept for subscribers that are away."`

	// Who we are: one of these, or a user or token in URL, or nothing. The files
	// are read for each connection.
	Token     sinks.Secret `yaml:"token" doc:"The token of a server that wants one."`
	User      string       `yaml:"user" example:"bridge" doc:"The user of a server that wants a user and password."`
	Password  sinks.Secret `yaml:"password" doc:"The password of user."`
	NKeyFile  string       `yaml:"nkey_file" path:"true" example:"/etc/bridge/user.nk" doc:"File with the seed (SU…) of a user's nkey."`
	CredsFile string       `yaml:"creds_file" path:"true" example:"/etc/bridge/user.creds" doc:"File with a user's JWT and seed, as nsc writes it."`

	TLS    sinks.TLS `yaml:"tls" doc:"How the connection is secured. A server that wants TLS gets it without this too, if this machine trusts its certificate."`
	Stream Stream    `yaml:"stream" doc:"The stream to make where none takes a subject. It is left out if somebody else makes the streams."`

	// Format is the form of the messages, binary if empty; Labels are what templates
	// know of the sources.
	Format sinks.Format `yaml:"-"`
	Labels sinks.Labels `yaml:"-"`
}

// Validate returns all that is wrong with the configuration. Each error names
// the field, its value and what would be right.
func (c Config) Validate() error {
	_, subjectErr := parseSubject(c.Subject)
	_, headersErr := sinks.ParseHeaders(c.Headers, nil)
	return errors.Join(validateURL(c.URL), subjectErr, headersErr, c.validateLogin(), c.TLS.Validate(), c.validateTransport(), c.validateStream())
}

// Templates returns the templates of the configuration by their keys.
func (c Config) Templates() map[string]string {
	all := map[string]string{"subject": c.Subject}
	for name, text := range c.Headers {
		all["headers."+name] = text
	}
	return all
}

func validateURL(list string) error {
	if strings.TrimSpace(list) == "" {
		return errors.New("url: is missing; set it to the server's address, such as nats://localhost:4222")
	}
	var problems []error
	for server := range strings.SplitSeq(list, ",") {
		if err := validateServer(strings.TrimSpace(server)); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

func validateServer(server string) error {
	const next = "write it as nats://host:port"
	u, err := parseServer(server)
	switch {
	case err != nil: // the parser's own error would show a password
		return fmt.Errorf("url: %q is not an address; %s", masked(server), next)
	case u.Hostname() == "":
		return fmt.Errorf("url: %q names no host; %s", masked(server), next)
	}
	switch u.Scheme {
	case "nats", "tls", "ws", "wss":
		return nil
	}
	return fmt.Errorf("url: %q has the scheme %q; use nats, tls, ws or wss", masked(server), u.Scheme)
}

// parseServer reads one address as the client library does: nats:// may be left out.
func parseServer(server string) (*url.URL, error) {
	if server != "" && !strings.Contains(server, "://") {
		server = "nats://" + server
	}
	return url.Parse(server)
}

// masked is a list of addresses without what stands before the @ in them.
func masked(list string) string {
	servers := strings.Split(list, ",")
	for i, server := range servers {
		server = strings.TrimSpace(server)
		if at := strings.LastIndexByte(server, '@'); at >= 0 {
			scheme, _, found := strings.Cut(server, "://")
			if !found {
				scheme = "nats"
			}
			server = scheme + "://***@" + server[at+1:]
		}
		servers[i] = server
	}
	return strings.Join(servers, ",")
}

// parseSubject reads the template and tries it: what it makes of an event must
// be a subject that one can publish to.
func parseSubject(text string) (*sinks.Template, error) {
	template, err := sinks.ParseTemplate(text)
	if err != nil {
		return nil, fmt.Errorf("subject: %w", err)
	}
	sample := template.Place(&listener.Event{})
	if strings.ContainsAny(sample, " \t\r\n\x00") {
		return nil, fmt.Errorf("subject: %q has a blank in it; use letters, digits, _, - and dots", text)
	}
	for token := range strings.SplitSeq(sample, ".") {
		switch token {
		case "":
			return nil, fmt.Errorf("subject: %q has an empty part; write exactly one dot between parts and none at the ends", text)
		case "*", ">":
			return nil, fmt.Errorf("subject: %q has the wildcard %s, which only subscribers may use; leave it out", text, token)
		}
	}
	if strings.HasPrefix(sample, "$") {
		return nil, fmt.Errorf("subject: %q begins with $, which is kept for the server's own subjects; choose another", text)
	}
	return template, nil
}
