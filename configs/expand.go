package configs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sparkbridge/sinks"
)

// Environment is where the variables of a configuration come from, and what its
// relative paths start at.
type Environment struct {
	// Lookup returns the value of a variable and whether it is set.
	Lookup func(name string) (string, bool)
	// ReadFile returns the text of a file named by ${file:/path}.
	ReadFile func(path string) (string, error)
	// Files says that the files of sinks must be there and fit for their use.
	Files bool
	// Folder is where relative paths start; empty is the working directory.
	Folder string
}

// OSEnvironment is the environment of this process, and its file system.
func OSEnvironment() Environment {
	return Environment{Lookup: os.LookupEnv, ReadFile: readValueFile}
}

func readValueFile(path string) (string, error) {
	data, err := sinks.ReadFile(path)
	return string(data), err
}

// find is where a path leads.
func (e Environment) find(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(e.Folder, path)
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expand replaces ${NAME}, ${NAME:-default} and ${file:/path} in the text of one
// value, and $$ by $. Any other $ stays. What is put in is not looked at again,
// and as it is put into a value that YAML has already parsed, it can become no
// other key. changed says that something was put in.
func (e Environment) expand(text string) (out string, changed bool, err error) {
	var b strings.Builder
	var problems []error
	for {
		before, rest, found := strings.Cut(text, "$")
		b.WriteString(before)
		switch {
		case !found:
			return b.String(), changed, errors.Join(problems...)
		case strings.HasPrefix(rest, "$"):
			b.WriteByte('$')
			text = rest[1:]
		case strings.HasPrefix(rest, "{"):
			inside, after, closed := strings.Cut(rest[1:], "}")
			if !closed {
				return "", changed, errors.Join(append(problems, errors.New("has ${ without }: close it, or write $$ for a plain $"))...)
			}
			value, err := e.variable(inside)
			if err != nil {
				problems = append(problems, err)
			}
			b.WriteString(value)
			changed, text = true, after
		default:
			b.WriteByte('$')
			text = rest
		}
	}
}

// variable returns the value of what stands between the braces. As in the shell,
// a default also replaces an empty value.
func (e Environment) variable(inside string) (string, error) {
	if path, ok := strings.CutPrefix(inside, "file:"); ok {
		found := e.find(path)
		text, err := e.ReadFile(found)
		if err != nil {
			return "", fmt.Errorf("has ${%s}: %s: %w", inside, found, err)
		}
		value := strings.TrimRight(text, "\r\n")
		if value == "" { // half a secret must not turn signing or a login off
			return "", fmt.Errorf("has ${%s}, and that file is empty: write the value into it, or take the key out", inside)
		}
		return value, nil
	}
	name, fallback, hasFallback := strings.Cut(inside, ":-")
	if !variableName.MatchString(name) {
		// Not shown: it may be a piece of a password that holds ${ by chance.
		return "", errors.New("has a ${…} that is no variable: write ${NAME}, ${NAME:-default} or ${file:/path}, or $${ for a plain ${")
	}
	value, set := e.Lookup(name)
	switch {
	case hasFallback && value == "":
		return fallback, nil
	case !set:
		return "", fmt.Errorf("the variable %s is not set: set it, or give a default as in ${%s:-default}", name, name)
	}
	return value, nil
}
