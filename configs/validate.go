package configs

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"sparkbridge/connect"
)

// validate notes all that is wrong with the values: first what the tags say of
// single keys, then what keys must be to one another.
func (c *Config) validate(p *problems) {
	checkTags(p, reflect.ValueOf(c).Elem(), "")
	c.checkSources(p)
	c.checkSinks(p)
}

// checkTags checks required, enum, pattern and min throughout the tree.
func checkTags(p *problems, v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			checkTags(p, v.Elem(), path)
		}
	case reflect.Slice:
		for i := range v.Len() {
			checkTags(p, v.Index(i), index(path, i))
		}
	case reflect.Struct:
		for _, k := range keysOf(v.Type()) {
			at := join(path, k.name)
			if !p.failed(at) {
				k.check(p, v.Field(k.index), at)
			}
			checkTags(p, v.Field(k.index), at)
		}
	}
}

func (k key) check(p *problems, v reflect.Value, path string) {
	text := textOf(v)
	switch {
	case k.required && isEmpty(v):
		p.add(path, "is required: %s", k.advice())
	case k.enum != nil && !slices.Contains(k.enum, text):
		p.add(path, "%s is not known: use %s", p.quote(path, text), strings.Join(k.enum, " or "))
	case k.pattern != "" && text != "" && !regexp.MustCompile(k.pattern).MatchString(text):
		p.add(path, "%s has another form than it may: use %s", p.quote(path, text), cmp.Or(k.formText, k.pattern))
	case k.min != "" && v.Int() < k.least():
		p.add(path, "%s is too little: use at least %s", p.quote(path, text), k.min)
	}
}

// textOf is a value as a file would have it.
func textOf(v reflect.Value) string {
	if v.Type() == durationType {
		return formatDuration(time.Duration(v.Int()))
	}
	return fmt.Sprint(v.Interface())
}

func isEmpty(v reflect.Value) bool {
	return v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0
}

// advice is the next step where the key is missing.
func (k key) advice() string {
	if k.example != "" {
		return "write for example " + k.name + ": " + k.example
	}
	if shapeOf(k.typ) == shapeList {
		return "name at least one"
	}
	return "give it a value"
}

func (k key) least() int64 {
	least := reflect.New(k.typ).Elem()
	if err := setText(least, k.min); err != nil {
		panic(fmt.Sprintf("configs: min of %s: %s %v", k.name, k.min, err))
	}
	return least.Int()
}

// ParsedRemote returns the connection string in its parts, with the token of the
// token key in it. Of a checked configuration it cannot fail; its errors are those
// of connect.ParseRemote and name no secret.
func (s *Source) ParsedRemote() (connect.Remote, error) {
	remote, err := connect.ParseRemote(s.Remote.Reveal())
	if err != nil {
		return connect.Remote{}, err
	}
	return remote.WithToken(s.Token.Reveal())
}

func (c *Config) checkSources(p *problems) {
	names, sessions := map[string]string{}, map[string]string{}
	for i := range c.Sources {
		s, path := &c.Sources[i], index("sources", i)
		unique(p, names, s.Name, join(path, "name"))
		s.check(p, path, sessions)
	}
}

// check checks the connection of a source; sessions has the paths of the sources
// before it by server, user and session.
func (s *Source) check(p *problems, path string, sessions map[string]string) {
	at := join(path, "remote")
	if p.failed(at) {
		return
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
	if s.CreateSession {
		return
	}
	var missing []string
	if remote.UserID == "" {
		missing = append(missing, "user_id")
	}
	if remote.SessionID == "" {
		missing = append(missing, "session_id")
	}
	if len(missing) > 0 {
		p.add(path, "has no %s: add the job's own, as in ;user_id=etl;session_id=<UUID>, or set create_session to make a session",
			strings.Join(missing, " and no "))
	}
}

func (c *Config) checkSinks(p *problems) {
	names := map[string]string{}
	for i := range c.Sinks {
		s, path := &c.Sinks[i], index("sinks", i)
		unique(p, names, s.Name, join(path, "name"))
		s.check(p, path)
	}
}

// validator is what the configuration of a destination can do.
type validator interface{ Validate() error }

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

// isKey says that a name is that of a key, or of an item of its list.
func isKey(t reflect.Type, name string) bool {
	name, _, _ = strings.Cut(name, "[")
	return slices.Contains(keyNames(keysOf(t)), name)
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
