package configs

import (
	"log/slog"

	"sparkbridge/connect"
	"sparkbridge/sinks"
)

// masked stands wherever a secret would.
const masked = "***"

// Secret is a text that is never shown: printing, logging and marshalling give
// three stars, or nothing where it is empty. Reveal gives the text.
type Secret = sinks.Secret

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
