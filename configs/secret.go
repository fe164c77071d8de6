package configs

import (
	"log/slog"

	"sparkbridge/connect"
)

// masked stands wherever a secret would.
const masked = "***"

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
	return masked
}

// GoString hides the text from %#v.
func (s Secret) GoString() string { return `configs.Secret("` + s.String() + `")` }

// LogValue hides the text from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText hides the text from encoders, encoding/json among them.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON hides the text.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }

// MarshalYAML hides the text.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }

// ConnectionString is a Spark Connect connection string (sc://host:port/;key=value;…).
// It may hold a token and secret headers, so it shows itself without them.
type ConnectionString string

// Reveal returns the string itself.
func (c ConnectionString) Reveal() string { return string(c) }

// String returns the connection string with the token and the values of all
// headers hidden; three stars where it cannot be read.
func (c ConnectionString) String() string {
	if c == "" {
		return ""
	}
	remote, err := connect.ParseRemote(string(c))
	if err != nil {
		return masked
	}
	return remote.String()
}

// GoString hides the secrets from %#v.
func (c ConnectionString) GoString() string { return `configs.ConnectionString("` + c.String() + `")` }

// LogValue hides the secrets from slog.
func (c ConnectionString) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalText hides the secrets from encoders.
func (c ConnectionString) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// MarshalYAML hides the secrets.
func (c ConnectionString) MarshalYAML() (any, error) { return c.String(), nil }
