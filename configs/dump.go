package configs

import (
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// MarshalJSON writes the effective configuration with the keys of the file, in
// their order, and without secrets: tokens, passwords and the paths of URLs are
// hidden. It is for people to read; it cannot be loaded again.
func (c Config) MarshalJSON() ([]byte, error) {
	return json.Marshal(shown(reflect.ValueOf(c)))
}

// MarshalYAML writes the same as MarshalJSON, as a file would have it.
func (c Config) MarshalYAML() (any, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("show configuration: %w", err)
	}
	var doc yaml.Node // JSON is YAML, and a node keeps the order of its keys
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("show configuration: %w", err)
	}
	plain(&doc)
	return doc.Content[0], nil
}

// plain takes JSON's brackets and quotes away where YAML does not need them.
func plain(n *yaml.Node) {
	n.Style = 0
	for _, child := range n.Content {
		plain(child)
	}
}

// shown returns a value in the form of the file, secrets hidden.
func shown(v reflect.Value) any {
	switch shapeOf(v.Type()) {
	case shapeMapping:
		return shownMapping(reflect.Indirect(v))
	case shapeList:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = shown(v.Index(i))
		}
		return list
	case shapeMap:
		return shownMap(v)
	case shapeBool, shapeInt:
		return v.Interface()
	}
	if v.Type() == sparkTextType {
		return shownText(v.String())
	}
	return maskURLs(textOf(v))
}

// shownMap sorts by the keys.
func shownMap(v reflect.Value) node {
	var n node
	for _, key := range v.MapKeys() {
		value := shown(v.MapIndex(key))
		if v.Type().Elem() == settingType {
			value = shownSetting(key.String(), v.MapIndex(key).String())
		}
		n = append(n, member{key.String(), value})
	}
	slices.SortFunc(n, func(a, b member) int { return strings.Compare(a.name, b.name) })
	return n
}

// shownMapping leaves out what is not set and has no default. A default is shown even
// where it is nothing, such as 0s: a reader cannot tell otherwise that it is one.
func shownMapping(v reflect.Value) node {
	var n node
	for _, k := range keysOf(v.Type()) {
		field := v.Field(k.index)
		if isEmpty(field) && field.Kind() != reflect.Bool && k.fallback == "" {
			continue
		}
		n = append(n, member{k.name, shown(field)})
	}
	return n
}

// maskURLs hides users, passwords, paths and queries of http, NATS and other
// URLs, several separated by commas: with many webhooks the path is the secret.
// Of a connection string the token and headers are hidden; a folder is no URL.
func maskURLs(text string) string {
	if strings.HasPrefix(text, "sc://") {
		return ConnectionString(text).String()
	}
	if !strings.ContainsAny(text, "@/") {
		return text
	}
	parts := strings.Split(text, ",")
	for i, part := range parts {
		parts[i] = maskURL(part)
	}
	return strings.Join(parts, ",")
}

// maskURL shows scheme, host and port. What is no URL but has a user in it is
// hidden whole.
func maskURL(text string) string {
	u, err := url.Parse(strings.TrimSpace(text))
	switch {
	case (err != nil || u.Host == "") && (strings.Contains(text, "@") || strings.Contains(text, "://")):
		return masked
	case err != nil || u.Host == "":
		return text
	}
	out := u.Scheme + "://"
	if u.User != nil {
		out += masked + "@"
	}
	out += u.Host
	if len(u.Path) > 1 || u.RawQuery != "" {
		out += "/…"
	}
	return out
}
