package sinks

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Format is the form in which events travel.
type Format string

// The forms. FormatBinary has the attributes of the CloudEvent in headers and Spark's
// own bytes as the content; FormatStructured is one JSON document with both;
// FormatRaw is Spark's bytes alone, with the id where the destination wants one to recognise
// repeats. Empty is the form that is usual at the destination.
const (
	FormatBinary     Format = "binary"
	FormatStructured Format = "structured"
	FormatRaw        Format = "raw"
)

// Or is the format, or the one that is usual where none is given.
func (f Format) Or(usual Format) Format {
	if f == "" {
		return usual
	}
	return f
}

// Headers are headers of the user's own, each with a template of its value.
type Headers []Header

// Header is one of them.
type Header struct {
	Name  string
	Value *Template
}

// headerName is what the strictest destination takes as the name of a header.
var headerName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// ParseHeaders reads templates by the names of headers. Names that the sinks use
// themselves are refused. Each error begins with headers and the name.
func ParseHeaders(texts map[string]string, labels Labels) (Headers, error) {
	var headers Headers
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		template, err := ParseTemplate(texts[name])
		lower := strings.ToLower(name)
		switch {
		case !headerName.MatchString(name):
			err = fmt.Errorf("%q is not the name of a header; use letters, digits, - and _", name)
		case lower == "content-type" || strings.HasPrefix(lower, "ce-") || strings.HasPrefix(lower, "ce_") || strings.HasPrefix(lower, "nats-") || strings.HasPrefix(lower, "webhook-"):
			err = fmt.Errorf("%q is set by the bridge; choose another name", name)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("headers.%s: %w", name, err))
			continue
		}
		headers = append(headers, Header{name, template.With(labels)})
	}
	return headers, errors.Join(problems...)
}

// OversizeError is the refusal of an event that cannot be cut to what a destination
// takes: what stands beside its payload is too much already.
type OversizeError struct {
	Place       string // subject, topic
	Size, Limit int    // bytes
}

// Error says what does not fit.
func (e *OversizeError) Error() string {
	return fmt.Sprintf("the event cannot be cut to what %s takes: %d bytes, and the limit is %d; raise the limit there", e.Place, e.Size, e.Limit)
}
