package configs

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// maxNodes bounds what a file may unfold to by aliases of aliases.
const maxNodes = 100_000

// decoder fills the tree from a parsed file, and notes every problem on its way
// instead of stopping at the first.
type decoder struct {
	*problems
	env   Environment
	nodes int
}

// value fills v from a node.
func (d *decoder) value(n *yaml.Node, v reflect.Value, path string) {
	if d.nodes++; d.nodes > maxNodes {
		if d.nodes == maxNodes+1 {
			d.addAt(n.Line, n.Column, path, "unfolds to more than %d values: use fewer aliases", maxNodes)
		}
		return
	}
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	d.at[path] = place{line: n.Line, column: n.Column}
	if n.ShortTag() == "!!null" {
		d.add(path, "has no value: give it one, or leave the key out")
		return
	}
	switch want := shapeOf(v.Type()); {
	case want == shapeMapping && n.Kind == yaml.MappingNode:
		d.mapping(n, settle(v), path)
	case want == shapeList && n.Kind == yaml.SequenceNode:
		d.list(n, v, path)
	case want == shapeMap && n.Kind == yaml.MappingNode:
		d.entries(n, v, path)
	case want != shapeMapping && want != shapeMap && want != shapeList && n.Kind == yaml.ScalarNode:
		d.scalar(n, v, path)
	default:
		d.wrongType(n, v.Type(), path)
	}
}

// settle returns the struct that v is or points to, made with its defaults.
func settle(v reflect.Value) reflect.Value {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
		setDefaults(v)
	}
	return v
}

func (d *decoder) list(n *yaml.Node, v reflect.Value, path string) {
	list := reflect.MakeSlice(v.Type(), 0, min(len(n.Content), 64))
	for i, item := range n.Content {
		element := reflect.New(v.Type().Elem()).Elem()
		if element.Kind() == reflect.Struct {
			setDefaults(element)
		}
		d.value(item, element, index(path, i))
		list = reflect.Append(list, element)
		if d.nodes > maxNodes {
			break
		}
	}
	v.Set(list)
}

func (d *decoder) mapping(n *yaml.Node, v reflect.Value, path string) {
	keys := keysOf(v.Type())
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, item := n.Content[i], n.Content[i+1]
		k, known := d.key(name, keys, path)
		if !known {
			continue
		}
		if line, twice := first[k.name]; twice {
			d.addAt(name.Line, name.Column, join(path, k.name), "is given twice, first on line %d: keep one of them", line)
			continue
		}
		first[k.name] = name.Line
		d.value(item, v.Field(k.index), join(path, k.name))
	}
}

// entries fills a map, whose keys are the user's own.
func (d *decoder) entries(n *yaml.Node, v reflect.Value, path string) {
	m := reflect.MakeMap(v.Type())
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, item := n.Content[i], n.Content[i+1]
		at := join(path, clip(name.Value))
		key := reflect.ValueOf(name.Value)
		switch {
		case name.Kind != yaml.ScalarNode || name.Value == "" || name.ShortTag() == "!!merge":
			d.addAt(name.Line, name.Column, path, "has a key that is no plain text: give each value a name")
			continue
		case m.MapIndex(key).IsValid():
			d.addAt(name.Line, name.Column, at, "is given twice: keep one of them")
			continue
		}
		element := reflect.New(v.Type().Elem()).Elem()
		d.value(item, element, at)
		m.SetMapIndex(key, element)
	}
	v.Set(m)
}

// key finds the key that a node names, and notes one that nobody knows.
func (d *decoder) key(n *yaml.Node, keys []key, path string) (key, bool) {
	switch {
	case n.Kind != yaml.ScalarNode:
		d.addAt(n.Line, n.Column, path, "has a key that is no plain text: use one of %s", strings.Join(keyNames(keys), ", "))
		return key{}, false
	case n.ShortTag() == "!!merge":
		d.addAt(n.Line, n.Column, path, "merges another mapping by <<, which is not supported: write the keys out")
		return key{}, false
	}
	for _, k := range keys {
		if k.name == n.Value {
			return k, true
		}
	}
	advice := "use one of " + strings.Join(keyNames(keys), ", ")
	if near := nearest(n.Value, keyNames(keys)); near != "" {
		advice = "did you mean " + near + "?"
		d.meant[join(path, near)] = true
	}
	d.addAt(n.Line, n.Column, join(path, clip(n.Value)), "is an unknown key: %s", advice)
	return key{}, false
}

func clip(name string) string {
	quoted := quote(name)
	if quoted == `"`+name+`"` {
		return name
	}
	return quoted
}

// scalar fills v from one value, variables expanded. Only texts have variables,
// and a text that had some may become any type.
func (d *decoder) scalar(n *yaml.Node, v reflect.Value, path string) {
	text, expanded := n.Value, false
	if n.ShortTag() == "!!str" {
		var err error
		if text, expanded, err = d.env.expand(n.Value); err != nil {
			d.add(path, "%v", err)
			return
		}
	}
	if expanded {
		at := d.at[path]
		at.expanded = n.Value
		d.at[path] = at
	} else if !fits(n.ShortTag(), shapeOf(v.Type())) {
		d.wrongType(n, v.Type(), path)
		return
	}
	if err := setText(v, text); err != nil {
		if isSecret(v.Type()) {
			d.add(path, "%v", err)
			return
		}
		d.add(path, "%s %v", d.quote(path, text), err)
	}
}

// fits says whether a literal of a YAML type may stand for a value of a shape.
func fits(tag string, want shape) bool {
	switch want {
	case shapeBool:
		return tag == "!!bool"
	case shapeInt:
		return tag == "!!int"
	case shapeScalar:
		return tag == "!!str" || tag == "!!int" || tag == "!!float" || tag == "!!bool" || tag == "!!timestamp"
	case shapeSize:
		return tag == "!!str" || tag == "!!int"
	default:
		return tag == "!!str" || tag == "!!timestamp"
	}
}

func (d *decoder) wrongType(n *yaml.Node, t reflect.Type, path string) {
	found := map[string]string{
		"!!map": "a mapping", "!!seq": "a list", "!!str": "the text", "!!int": "the number", "!!float": "the number", "!!bool": "the value",
	}[n.ShortTag()]
	switch {
	case found == "": // a tag of somebody's own, or a secret that begins with !
		found = "a value with a tag (!)"
	case n.Kind == yaml.ScalarNode && !isSecret(t):
		found += " " + quote(n.Value)
	}
	advice := ""
	switch want := shapeOf(t); {
	case n.Kind == yaml.ScalarNode && want == shapeText:
		advice = ": put it into quotes"
	case want == shapeDuration && n.ShortTag() == "!!int":
		advice = ": write its unit"
	case (want == shapeBool || want == shapeInt) && n.ShortTag() == "!!str" && n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		advice = ": leave the quotes out"
	}
	d.add(path, "wants %s, not %s%s", shapeOf(t).wanted(), found, advice)
}

// setText sets a value of any type but lists and mappings. Its errors say what
// is wrong with the text, which the caller names.
func setText(v reflect.Value, text string) error {
	if reader, ok := v.Addr().Interface().(interface{ UnmarshalText([]byte) error }); ok {
		return reader.UnmarshalText([]byte(text))
	}
	switch {
	case v.Type() == durationType:
		dur, err := parseDuration(text)
		if err != nil {
			return err
		}
		v.SetInt(int64(dur))
	case v.Kind() == reflect.String:
		v.SetString(text)
	case v.Kind() == reflect.Bool:
		if text != "true" && text != "false" {
			return fmt.Errorf("is neither true nor false")
		}
		v.SetBool(text == "true")
	case v.CanInt():
		n, err := strconv.ParseInt(text, 10, v.Type().Bits())
		if err != nil {
			return fmt.Errorf("is not a whole number that fits")
		}
		v.SetInt(n)
	default:
		panic(fmt.Sprintf("configs: the tree holds a %s, which the loader cannot read", v.Type()))
	}
	return nil
}
