package configs

import (
	"errors"
	"io/fs"
	"reflect"
	"strings"

	"sparkbridge/sinks"
)

// resolve makes all paths of the tree lead where they are meant to.
func resolve(v reflect.Value, find func(path string) string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			resolve(v.Elem(), find)
		}
	case reflect.Slice:
		for i := range v.Len() {
			resolve(v.Index(i), find)
		}
	case reflect.Struct:
		for _, k := range keysOf(v.Type()) {
			field := v.Field(k.index)
			if k.path {
				field.SetString(find(field.String()))
				continue
			}
			resolve(field, find)
		}
	}
}

// checkFiles reads the files that the configuration names, and notes those that cannot
// be used and the warnings.
func (c *Config) checkFiles(p *problems) {
	for i := range c.Sources {
		path := index("sources", i)
		c.Sources[i].checkFile(p, join(path, "remote_file"))
		c.addFiles(p, path, c.Sources[i].TLS.CheckFiles())
	}
	for i := range c.Sinks {
		for _, d := range c.Sinks[i].destinations() {
			if d.config != nil {
				c.addFiles(p, join(index("sinks", i), d.key), d.config.CheckFiles())
			}
		}
	}
}

// checkFile checks a file that may be missing: the job writes it when it is there.
func (s *Source) checkFile(p *problems, path string) {
	if s.RemoteFile == "" || p.failed(path) {
		return
	}
	if _, err := sinks.ReadFile(s.RemoteFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.add(path, "%s: %v", s.RemoteFile, err)
	}
}

// addFiles notes what a source or destination says of its files, at the key of each.
func (c *Config) addFiles(p *problems, path string, err error) {
	var file *sinks.FileError
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range many.Unwrap() {
			c.addFiles(p, path, one)
		}
		return
	}
	if !errors.As(err, &file) {
		return
	}
	at := join(path, file.Key)
	switch {
	case p.failed(at):
	case errors.Is(err, sinks.ErrOutdated):
		c.Warnings = append(c.Warnings, p.problem(at, "%s: %v", file.Path, file.Err))
	default:
		p.add(at, "%s: %v", file.Path, file.Err)
	}
}

// checkTLS refuses the order not to use TLS beside keys that ask for it.
func checkTLS(p *problems, t sinks.TLS, path string) {
	at := join(path, "enabled")
	if _, written := p.at[at]; !written || t.Enabled || p.failed(at) {
		return
	}
	var others []string
	v := reflect.ValueOf(t)
	for _, k := range keysOf(v.Type()) {
		if !isEmpty(v.Field(k.index)) {
			others = append(others, k.name)
		}
	}
	if others != nil {
		p.add(at, "is false, and %s would turn TLS on: set it to true, or take that out", strings.Join(others, " and "))
	}
}
