package configs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"gopkg.in/yaml.v3"
)

// schemaID names the dialect that Schema is written in.
const schemaID = "https://json-schema.org/draft/2020-12/schema"

// Schema returns the JSON Schema (draft 2020-12) of a configuration file, for
// editors and other checkers. It is made from the tree itself. It knows the form
// of single values; what values must be to one another only the loader checks.
func Schema() []byte {
	root := schemaOf(key{typ: reflect.TypeFor[Config]()})
	root = append(node{{"$schema", schemaID}, {"title", "Configuration of the bridge"}}, root...)
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("configs: write schema: %v", err)) // it is made of texts and lists only
	}
	return append(text, '\n')
}

// node is an object of the schema whose members keep their order.
type node []member

type member struct {
	name  string
	value any
}

// MarshalJSON writes the members in their order.
func (n node) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// variable is a text with a variable in it, which may stand for any value.
var variable = node{{"type", "string"}, {"pattern", `\$\{`}}

func schemaOf(k key) node {
	var n node
	if k.doc != "" {
		n = append(n, member{"description", k.description()})
	}
	n = append(n, k.form()...)
	if k.fallback != "" {
		n = append(n, member{"default", k.typedDefault()})
	}
	if k.example != "" {
		n = append(n, member{"examples", []any{k.typedExample()}})
	}
	return n
}

// description is the doc, with what a schema cannot say otherwise.
func (k key) description() string {
	text := k.doc
	if k.formText != "" {
		text += " Its form: " + k.formText + "."
	}
	if k.path {
		text += " A relative path starts at the folder of the configuration file."
	}
	if k.min != "" {
		text += " At least " + k.min + "."
	}
	return text
}

// typedExample is the example as YAML reads it, since that of a list is a list.
func (k key) typedExample() any {
	var example any
	if err := yaml.Unmarshal([]byte(k.example), &example); err != nil {
		panic(fmt.Sprintf("configs: example of %s: %v", k.name, err))
	}
	return example
}

func (k key) typedDefault() any {
	v := reflect.New(k.typ).Elem()
	if err := setText(v, k.fallback); err == nil && (v.Kind() == reflect.Bool || shapeOf(k.typ) == shapeInt) {
		return v.Interface()
	}
	return k.fallback
}

func (k key) form() node {
	switch shapeOf(k.typ) {
	case shapeMapping:
		return mappingSchema(k.typ)
	case shapeList:
		n := node{{"type", "array"}, {"items", schemaOf(key{typ: k.typ.Elem(), enum: k.enum})}}
		if k.required {
			n = append(n, member{"minItems", 1})
		}
		return n
	case shapeMap:
		return node{{"type", "object"}, {"additionalProperties", schemaOf(key{typ: k.typ.Elem()})}}
	case shapeScalar:
		return node{{"type", []string{"string", "number", "boolean"}}}
	case shapeBool:
		return orVariable(node{{"type", "boolean"}})
	case shapeInt:
		return orVariable(node{{"type", "integer"}})
	case shapeDuration:
		return orVariable(node{{"type", "string"}, {"pattern", durationPattern}, {"minLength", 1}})
	case shapeSize:
		return node{{"anyOf", []node{{{"type", "string"}, {"pattern", sizePattern}}, {{"type", "integer"}, {"minimum", 0}}, variable}}}
	}
	switch {
	case k.enum != nil:
		return orVariable(node{{"enum", k.enum}})
	case k.pattern != "":
		return orVariable(node{{"type", "string"}, {"pattern", k.pattern}})
	case k.required, k.path, k.typ == secretType:
		return node{{"type", "string"}, {"minLength", 1}}
	}
	return node{{"type", "string"}}
}

func orVariable(form node) node { return node{{"anyOf", []node{form, variable}}} }

// mappingSchema allows the keys of a struct and no others. Keys of pointer type
// are alternatives, of which exactly one must be there.
func mappingSchema(t reflect.Type) node {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var properties node
	var required []string
	var alternatives []node
	for _, k := range keysOf(t) {
		properties = append(properties, member{k.name, schemaOf(k)})
		if k.required && k.fallback == "" {
			required = append(required, k.name)
		}
		if k.typ.Kind() == reflect.Pointer {
			alternatives = append(alternatives, node{{"required", []string{k.name}}})
		}
	}
	n := node{{"type", "object"}, {"properties", properties}, {"additionalProperties", false}}
	if required != nil {
		n = append(n, member{"required", required})
	}
	if alternatives != nil {
		n = append(n, member{"oneOf", alternatives})
	}
	return n
}
