package configs

import (
	"errors"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	sessionA = "5b0d2c1e-8f0a-4c53-9a58-7b1f0a4f3e11"
	sessionB = "00000000-0000-4000-8000-000000000002"
)

// good is a right configuration that tests add to.
const good = `sources:
  - name: etl
    remote: sc://spark/;user_id=etl;session_id=` + sessionA + `
sinks:
  - name: events
    nats: {url: nats://localhost:4222}
`

// environment has the given variables, and the given files by path.
func environment(variables, files map[string]string) Environment {
	return Environment{
		Lookup: func(name string) (string, bool) { v, ok := variables[name]; return v, ok },
		ReadFile: func(path string) (string, error) {
			if text, ok := files[path]; ok {
				return text, nil
			}
			return "", os.ErrNotExist
		},
	}
}

func parse(t *testing.T, text string) *Config {
	t.Helper()
	cfg, err := Parse("bridge.yaml", []byte(text), environment(nil, nil))
	if err != nil {
		t.Fatalf("Parse: %v\n%s", err, text)
	}
	return cfg
}

// problemsOf returns the lines of all problems of a text.
func problemsOf(t *testing.T, text string, env Environment) []string {
	t.Helper()
	cfg, err := Parse("f", []byte(text), env)
	if err == nil {
		return nil
	}
	var all Errors
	if cfg != nil || !errors.As(err, &all) || len(all) == 0 || all.ExitCode() != 2 {
		t.Fatalf("Parse returned %v and an error of type %T that is no Errors with exit code 2", cfg, err)
	}
	return strings.Split(err.Error(), "\n")
}

// same compares lines and shows what differs.
func same(t *testing.T, got, want []string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}
