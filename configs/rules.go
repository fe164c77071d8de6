package configs

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"sparkbridge/sinks"
)

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
	case reflect.Map:
		for _, name := range v.MapKeys() {
			checkTags(p, v.MapIndex(name), join(path, clip(name.String())))
		}
	case reflect.String:
		if v.Type() == secretType {
			checkGiven(p, v, path)
		}
	case reflect.Struct:
		if t, ok := v.Interface().(sinks.TLS); ok {
			checkTLS(p, t, path)
		}
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
	if k.path && !k.required {
		checkGiven(p, v, path)
	}
	switch {
	case k.required && isEmpty(v):
		p.add(path, "is required: %s", k.advice())
	case k.enum != nil && v.Kind() == reflect.Slice:
		k.checkItems(p, v, path)
	case k.enum != nil && !slices.Contains(k.enum, text) && (text != "" || k.fallback != ""):
		p.add(path, "%s is not known: use %s", p.quote(path, text), strings.Join(k.enum, " or "))
	case k.pattern != "" && text != "" && !regexp.MustCompile(k.pattern).MatchString(text):
		p.add(path, "%s has another form than it may: use %s", p.quote(path, text), cmp.Or(k.formText, k.pattern))
	case k.min != "" && v.Int() < k.least():
		p.add(path, "%s is too little: use at least %s", p.quote(path, text), k.min)
	}
}

// checkGiven refuses a secret or a file that is written out and empty: a login or a
// signature must not be off without a word, because of a variable that nobody has set.
func checkGiven(p *problems, v reflect.Value, path string) {
	switch {
	case v.Len() > 0 || !p.emptied(path) || p.failed(path):
	case p.at[path].expanded != "":
		p.add(path, "%s is empty: give the variable a value, or write it as in ${NAME:-} if it may be empty", quote(p.at[path].expanded))
	default:
		p.add(path, "is empty: give it a value, or take the key out")
	}
}

// checkItems checks the items of a list against the values that they can have.
func (k key) checkItems(p *problems, v reflect.Value, path string) {
	for i := range v.Len() {
		at, text := index(path, i), textOf(v.Index(i))
		if !p.failed(at) && !slices.Contains(k.enum, text) {
			p.add(at, "%s is not known: use %s", p.quote(at, text), strings.Join(k.enum, ", "))
		}
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
	return v.IsZero() || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0
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
