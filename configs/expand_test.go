package configs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestExpand(t *testing.T) {
	env := environment(
		map[string]string{"A": "one", "EMPTY": "", "NESTED": "${A}$$"},
		map[string]string{"/run/secrets/x": "s3cret\r\n", "/two": "a\nb\n"},
	)
	for text, want := range map[string]string{
		"":                       "",
		"plain":                  "plain",
		"${A}":                   "one",
		"<${A}-${A}>":            "<one-one>",
		"${A:-two}":              "one",
		"${NO:-two}":             "two",
		"${NO:-}":                "",
		"${EMPTY}":               "",
		"${EMPTY:-two}":          "two",
		"${NO:-a:-b}":            "a:-b",
		"${file:/run/secrets/x}": "s3cret",
		"${file:/two}":           "a\nb",
		"$${A}":                  "${A}",
		"$$":                     "$",
		"$$$${A}":                "$${A}",
		"pa$word$":               "pa$word$",
		"$A":                     "$A",
		"${NESTED}":              "${A}$$", // what is put in is not read again
		"${NO:-$}":               "$",
	} {
		if got, _, err := env.expand(text); err != nil || got != want {
			t.Errorf("%q: got %q and error %v, want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"${NO}":            "the variable NO is not set",
		"${A":              "has ${ without }",
		"${}":              "is no variable",
		"${s3cret word}":   "is no variable",
		"${1A}":            "is no variable",
		"${file:/nowhere}": "has ${file:/nowhere}: /nowhere: ",
		"${NO}${NOT}":      "the variable NOT is not set",
	} {
		_, _, err := env.expand(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: got error %v, want one that says %q", text, err, want)
		}
	}
}

// Whatever a variable holds becomes one value: no key, no list, no document.
func TestExpandInjectsNothing(t *testing.T) {
	evil := "x\"\n- name: b\n---\n{a: [&c *c]} # !!int"
	env := environment(map[string]string{"EVIL": evil}, nil)
	for _, style := range []string{"${EVIL}", `"${EVIL}"`, "'${EVIL}'", "|-\n      ${EVIL}"} {
		text := strings.Replace(good, "url: nats://localhost:4222}", "url: nats://h}\n  - name: w\n    kafka:\n     brokers: [h:1]\n     topic: "+style, 1)
		problems := problemsOf(t, text, env)
		if len(problems) != 1 || !strings.Contains(problems[0], "sinks[1].kafka.topic: ") {
			t.Errorf("%s: got %q, want only that the topic is none", style, problems)
		}
	}
	cfg, err := Parse("f", []byte(good+"journal: {dir: \"${EVIL}\"}\n"), env)
	if err != nil || cfg.Journal.Dir != evil || len(cfg.Sources) != 1 {
		t.Errorf("got %+v and error %v, want the text as the folder's name", cfg, err)
	}
}

// Variables may stand for values of any type, and errors show the variable
// instead of what it holds.
func TestExpandTypedValues(t *testing.T) {
	text := strings.Replace(good, "sinks:", "    create_session: ${BOOL}\n    poll_interval: ${TIME}\n    attach: ${ENUM}\njournal: {max_bytes: \"${SIZE}\"}\nsinks:", 1)
	cfg, err := Parse("f", []byte(text), environment(map[string]string{"BOOL": "true", "TIME": "7s", "ENUM": "at_once", "SIZE": "2GiB"}, nil))
	if err != nil {
		t.Fatal(err)
	}
	if s := cfg.Sources[0]; !s.CreateSession || s.PollInterval != 7*time.Second || s.Attach != AttachAtOnce || cfg.Journal.MaxBytes != 2<<30 {
		t.Errorf("got %+v, %+v", s, cfg.Journal)
	}
	got := problemsOf(t, text, environment(map[string]string{"BOOL": "secret", "TIME": "secret", "ENUM": "secret", "SIZE": "secret"}, nil))
	same(t, got, []string{
		`f:4:21: sources[0].create_session: "${BOOL}" is neither true nor false`,
		`f:5:20: sources[0].poll_interval: "${TIME}" is not a duration: write a number and a unit such as 500ms, 5s, 1m, 168h or 7d`,
		`f:6:13: sources[0].attach: "${ENUM}" is not known: use first_query or at_once`,
		`f:7:22: journal.max_bytes: "${SIZE}" is not a size: write a whole number and a unit such as 500MiB or 10GiB`,
	})
}

// Keys have no variables.
func TestExpandNoKeys(t *testing.T) {
	got := problemsOf(t, good+"${A}: {level: warn}\n", environment(map[string]string{"A": "log"}, nil))
	same(t, got, []string{"f:7:1: ${A}: is an unknown key: use one of sources, journal, sinks, http, log"})
}

// A file of a value is small and ends. Others are refused, and not opened: a pipe that
// nobody writes would hold the start up for ever.
func TestReadValueFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, size int) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.Repeat("x", size)), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.Symlink("right", link)); err != nil {
		t.Fatal(err)
	}
	env := OSEnvironment()
	for _, path := range []string{write("right", 10), link} {
		if got, _, err := env.expand("${file:" + path + "}"); err != nil || got != "xxxxxxxxxx" {
			t.Errorf("%s: got %q, %v", path, got, err)
		}
	}
	for path, want := range map[string]string{
		write("large", 1<<20+1):    "has more than 1048576 bytes",
		write("empty", 0):          "that file is empty",
		dir:                        dir + ": is a folder; name a file in it",
		pipe:                       pipe + ": is a pipe or a device; name a file",
		"/dev/zero":                "/dev/zero: is a pipe or a device",
		filepath.Join(dir, "none"): "there is no such file; put it there, or correct the path",
	} {
		refused := make(chan error, 1)
		go func() {
			_, _, err := env.expand("${file:" + path + "}")
			refused <- err
		}()
		select {
		case err := <-refused:
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got error %v, want %s", path, err, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s is still being read after a minute", path)
		}
	}
}
