package listener

// object writes a JSON object from keys and values that are JSON already.
type object struct{ buf []byte }

func (o *object) add(key, value string) {
	if key == "" || value == "" {
		return
	}
	if len(o.buf) == 0 {
		o.buf = append(o.buf, '{')
	} else {
		o.buf = append(o.buf, ',')
	}
	o.buf = append(append(append(o.buf, key...), ':'), value...)
}

// addMap adds a map unless it is empty.
func (o *object) addMap(key, value string) {
	if value != "{}" {
		o.add(key, value)
	}
}

func (o *object) close() []byte {
	if len(o.buf) == 0 {
		return []byte("{}")
	}
	return append(o.buf, '}')
}
