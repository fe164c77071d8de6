package configs

import (
	"fmt"
	"reflect"
	"strings"

	"sparkbridge/connect"
	"sparkbridge/sinks"
	"sparkbridge/sinks/webhook"
)

// validate notes all that is wrong with the values: first what the tags say of
// single keys, then what keys must be to one another.
func (c *Config) validate(p *problems) {
	checkTags(p, reflect.ValueOf(c).Elem(), "")
	c.checkSources(p)
	c.checkQueries(p)
	c.checkSinks(p)
	c.HTTP.check(p)
}

// ParsedRemote returns the connection string in its parts, with what the token and tls
// keys say in it. Of a checked configuration it cannot fail; its errors are those
// of connect.ParseRemote and name no secret.
func (s *Source) ParsedRemote() (connect.Remote, error) {
	remote, err := connect.ParseRemote(s.Remote.Reveal())
	if err != nil {
		return connect.Remote{}, err
	}
	return s.secured(remote)
}

// ReadRemote reads the connection string in RemoteFile. It returns it in its parts,
// and as it was written; its errors name no secret.
func (s *Source) ReadRemote() (remote connect.Remote, written string, err error) {
	text, err := sinks.ReadFile(s.RemoteFile)
	if err != nil {
		return connect.Remote{}, "", fmt.Errorf("read %s: %w", s.RemoteFile, err)
	}
	written = strings.TrimSpace(string(text))
	if remote, err = connect.ParseRemote(written); err != nil {
		return connect.Remote{}, "", fmt.Errorf("read %s: %w", s.RemoteFile, err)
	}
	if remote, err = s.secured(remote); err != nil {
		return connect.Remote{}, "", fmt.Errorf("read %s: %w", s.RemoteFile, err)
	}
	if missing := s.missingIDs(remote); missing != "" {
		return connect.Remote{}, "", fmt.Errorf("read %s: the connection string has no %s", s.RemoteFile, missing)
	}
	return remote, written, nil
}

func (c *Config) checkSources(p *problems) {
	names, sessions := map[string]string{}, map[string]string{}
	for i := range c.Sources {
		s, path := &c.Sources[i], index("sources", i)
		unique(p, names, s.Name, join(path, "name"))
		s.check(p, path, sessions)
		s.checkLabels(p, path)
		addEach(p, path, reflect.TypeFor[Source](), s.TLS.Validate())
	}
}

// check checks the connection of a source; sessions has the paths of the sources
// before it by server, user and session.
func (s *Source) check(p *problems, path string, sessions map[string]string) {
	at := join(path, "remote")
	if p.failed(at) || p.failed(join(path, "remote_file")) {
		return
	}
	switch {
	case s.Remote == "" && s.RemoteFile == "":
		p.add(at, "is missing: set it to the connection string of the session, or remote_file to a file that holds it")
		return
	case s.Remote != "" && s.RemoteFile != "":
		p.add(join(path, "remote_file"), "remote is set too: keep one of them")
		return
	case s.RemoteFile != "":
		return // read when it is needed, and again when it changes
	}
	if s.Mode == ModePoll && s.Takeover {
		p.add(join(path, "takeover"), "there is no bus to take with mode: poll: drop one of them")
	}
	remote, err := connect.ParseRemote(s.Remote.Reveal())
	if err == nil && remote.Token != "" && s.Token != "" {
		p.add(join(path, "token"), "a token stands in remote too: keep one of them")
		return
	}
	if err == nil {
		remote, err = s.ParsedRemote()
	}
	if err != nil {
		p.add(at, "%s", withoutPrefix(err))
		return
	}
	s.checkTLS(p, path, remote)
	s.checkIDs(p, at, remote)
	session := remote.Address() + " " + remote.UserID + " " + remote.SessionID
	if other, taken := sessions[session]; taken && remote.SessionID != "" {
		p.add(at, "is the session of %s (same server, user and session): a session has one bus, keep one of the two", other)
	}
	sessions[session] = path
}

// withoutPrefix leaves out that it is the connection string: the path says so.
func withoutPrefix(err error) string {
	return strings.TrimPrefix(err.Error(), "connection string: ")
}

func (s *Source) checkIDs(p *problems, path string, remote connect.Remote) {
	if missing := s.missingIDs(remote); missing != "" {
		p.add(path, "has no %s: add the job's own, as in ;user_id=etl;session_id=<UUID>, or set create_session to make a session", missing)
	}
}

// missingIDs names the ids that a connection string lacks, empty for none.
func (s *Source) missingIDs(remote connect.Remote) string {
	if s.CreateSession {
		return ""
	}
	var missing []string
	if remote.UserID == "" {
		missing = append(missing, "user_id")
	}
	if remote.SessionID == "" {
		missing = append(missing, "session_id")
	}
	return strings.Join(missing, " and no ")
}

func (c *Config) checkSinks(p *problems) {
	names := map[string]string{}
	for i := range c.Sinks {
		s, path := &c.Sinks[i], index("sinks", i)
		unique(p, names, s.Name, join(path, "name"))
		s.check(p, path)
		c.checkRoute(p, s, path)
	}
}

// validator is what the configuration of a destination can do.
type validator interface {
	Validate() error
	CheckFiles() error
}

// destination is the part of a sink that says where it sends.
type destination struct {
	key    string
	config validator // nil where the sink has none of this kind
}

// destinations returns all kinds of destinations of a sink.
func (s *Sink) destinations() []destination {
	var all []destination
	v := reflect.ValueOf(s).Elem()
	for _, k := range keysOf(v.Type()) {
		field := v.Field(k.index)
		if field.Kind() != reflect.Pointer {
			continue
		}
		d := destination{key: k.name}
		if !field.IsNil() {
			d.config = field.Interface().(validator)
		}
		all = append(all, d)
	}
	return all
}

func (s *Sink) check(p *problems, path string) {
	var found []string
	doubtful := false
	for _, d := range s.destinations() {
		at := join(path, d.key)
		doubtful = doubtful || p.failed(at)
		if w, ok := d.config.(*webhook.Config); ok {
			w.Format = s.Format // which its own checks ask for
		}
		if d.config != nil {
			found = append(found, d.key)
			addEach(p, at, reflect.TypeOf(d.config).Elem(), d.config.Validate())
		}
	}
	switch {
	case len(found) == 0 && !doubtful:
		p.add(path, "has no destination: add one of nats, kafka and webhook")
	case len(found) > 1:
		p.add(path, "has %s: keep one, and make a sink of its own for the other", strings.Join(found, " and "))
	}
	if at := join(path, "retry"); !p.failed(at) && s.Retry.Max < s.Retry.Initial {
		p.add(join(at, "max"), "%s is less than initial (%s): make it at least that", formatDuration(s.Retry.Max), formatDuration(s.Retry.Initial))
	}
}

// addEach notes the problems that a destination has with its own keys, each at
// the key that it names first.
func addEach(p *problems, path string, t reflect.Type, err error) {
	if err == nil {
		return
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range many.Unwrap() {
			addEach(p, path, t, one)
		}
		return
	}
	text := err.Error()
	if named, rest, ok := strings.Cut(text, ": "); ok && isKey(t, named) {
		path, text = join(path, named), rest
	}
	if !p.failed(path) {
		p.add(path, "%s", text)
	}
}

// isKey says that a path is that of a key, or of an item of its list, or of a
// key below it.
func isKey(t reflect.Type, path string) bool {
	name, rest, deeper := strings.Cut(path, ".")
	name, _, _ = strings.Cut(name, "[")
	for _, k := range keysOf(t) {
		inner := itemType(k.typ)
		if k.name == name && (!deeper || k.typ.Kind() == reflect.Map || inner.Kind() == reflect.Struct && isKey(inner, rest)) {
			return true
		}
	}
	return false
}

// unique notes a name that was there before.
func unique(p *problems, seen map[string]string, name, path string) {
	if name == "" || p.failed(path) {
		return
	}
	if first, taken := seen[name]; taken {
		p.add(path, "%s is the name of %s too: give each its own", p.quote(path, name), parent(first))
		return
	}
	seen[name] = path
}
