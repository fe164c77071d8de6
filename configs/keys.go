package configs

import (
	"reflect"
	"slices"
	"strings"
	"time"
)

// key is one key of the tree, read from a field and its tags.
type key struct {
	name     string
	index    int // of the field in its struct
	typ      reflect.Type
	doc      string
	fallback string // the default as written in a file
	enum     []string
	pattern  string
	formText string // the pattern in words
	min      string
	example  string
	required bool
	path     bool // of a file or folder
}

// keysOf returns the keys of a struct in the order of its fields.
func keysOf(t reflect.Type) []key {
	var keys []key
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if !f.IsExported() || name == "" || name == "-" {
			continue
		}
		k := key{
			name: name, index: i, typ: f.Type,
			doc: f.Tag.Get("doc"), fallback: f.Tag.Get("default"), pattern: f.Tag.Get("pattern"), formText: f.Tag.Get("form"),
			min: f.Tag.Get("min"), example: f.Tag.Get("example"), required: f.Tag.Get("required") == "true",
			path: f.Tag.Get("path") == "true",
		}
		if enum := f.Tag.Get("enum"); enum != "" {
			k.enum = strings.Split(enum, ",")
		}
		keys = append(keys, k)
	}
	return keys
}

func keyNames(keys []key) []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name
	}
	return names
}

// shape is how a type looks in a file.
type shape int

const (
	shapeText shape = iota
	shapeBool
	shapeInt
	shapeDuration
	shapeSize
	shapeList
	shapeMapping
	shapeMap    // a mapping with keys of the user's own
	shapeScalar // a text, or what could be written as one
)

var (
	durationType = reflect.TypeFor[time.Duration]()
	sizeType     = reflect.TypeFor[Size]()
	secretType   = reflect.TypeFor[Secret]()
	remoteType   = reflect.TypeFor[ConnectionString]()
	settingType  = reflect.TypeFor[Setting]()
	textReader   = reflect.TypeFor[interface{ UnmarshalText([]byte) error }]()
)

func shapeOf(t reflect.Type) shape {
	switch {
	case t == settingType:
		return shapeScalar
	case t == durationType:
		return shapeDuration
	case t == sizeType:
		return shapeSize
	case reflect.PointerTo(t).Implements(textReader):
		return shapeText
	case t.Kind() == reflect.Bool:
		return shapeBool
	case t.Kind() == reflect.Slice:
		return shapeList
	case t.Kind() == reflect.Map:
		return shapeMap
	case t.Kind() == reflect.Struct, t.Kind() == reflect.Pointer:
		return shapeMapping
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Int64:
		return shapeInt
	}
	return shapeText
}

// wanted says what a file must have for a shape, with its article.
func (s shape) wanted() string {
	return [...]string{
		"a text", "true or false", "a whole number", "a duration such as 5s or 1m", "a size such as 10GiB",
		"a list (lines that start with - )", "a mapping (lines of key: value)", "a mapping (lines of key: value)",
		"a text, a number, true or false",
	}[s]
}

// isSecret says that values of the type are not for showing, nor a text that was
// written where a list or a mapping with secrets belongs.
func isSecret(t reflect.Type) bool {
	t = itemType(t)
	if t == secretType || t == remoteType || t == settingType {
		return true
	}
	return t.Kind() == reflect.Struct && shapeOf(t) == shapeMapping &&
		slices.ContainsFunc(keysOf(t), func(k key) bool { return isSecret(k.typ) })
}

// itemType is the type of the items of a list or of the values of a map, of what a pointer points to, and
// otherwise the type itself.
func itemType(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	return t
}
