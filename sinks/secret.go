package sinks

import "log/slog"

// hidden stands wherever a secret would.
const hidden = "***"

// Secret is a text that is never shown: printing, logging and marshalling give
// three stars, or nothing where it is empty. Reveal gives the text.
type Secret string

// Reveal returns the text itself, for the one place that sends it.
func (s Secret) Reveal() string { return string(s) }

// String hides the text.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// GoString hides the text from %#v.
func (s Secret) GoString() string { return `Secret("` + s.String() + `")` }

// LogValue hides the text from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText hides the text from encoders, encoding/json among them.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON hides the text.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }

// MarshalYAML hides the text.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }
