package configs

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
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
