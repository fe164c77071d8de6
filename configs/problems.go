package configs

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Error is one problem of a configuration.
type Error struct {
	File         string // empty where the configuration comes from flags
	Line, Column int    // from 1; 0 where the problem has no place in the file
	Path         string // the key's path as in sources[0].remote, or the flag
	Problem      string // what is wrong, and the next step

	key string // the key's path, also where Path is a flag
}

// Error is one line: file:line:column: path: problem.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File)
		if e.Line > 0 {
			b.WriteString(":" + strconv.Itoa(e.Line))
		}
		if e.Line > 0 && e.Column > 0 {
			b.WriteString(":" + strconv.Itoa(e.Column))
		}
		b.WriteString(": ")
	}
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	return b.String() + oneLine(e.Problem)
}

// oneLine keeps the promise of one line for texts that came from elsewhere.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// Errors is all that is wrong with a configuration, in the order of the file.
type Errors []*Error

// Error has one line for each problem.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, err := range e {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the problems to errors.As.
func (e Errors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, err := range e {
		errs[i] = err
	}
	return errs
}

// ExitCode is what a program exits with that cannot start for these problems.
func (e Errors) ExitCode() int { return 2 }

// maxProblems is how many are told. Nobody reads more, and an alias that stands
// for a large list could make any number.
const maxProblems = 100

// problems collects what is wrong, and knows where each value stands.
type problems struct {
	file  string
	at    map[string]place  // by path, of what the file has
	flags map[string]string // by path, the flag that gave it
	meant map[string]bool   // paths that an unknown key seems to have meant
	list  Errors
}

// place is where a value stands, and how the file writes it.
type place struct {
	line, column int
	expanded     string // the source text of a value with variables
}

func newProblems(file string) *problems {
	return &problems{file: file, at: map[string]place{}, flags: map[string]string{}, meant: map[string]bool{}}
}

// add notes a problem at the place of the path, or of the nearest one above it.
func (p *problems) add(path, format string, args ...any) {
	p.note(p.problem(path, format, args...))
}

func (p *problems) addAt(line, column int, path, format string, args ...any) {
	p.note(p.problemAt(line, column, path, format, args...))
}

func (p *problems) note(e *Error) {
	if len(p.list) < maxProblems {
		p.list = append(p.list, e)
	}
}

func (p *problems) problem(path, format string, args ...any) *Error {
	where := path
	for where != "" {
		if _, ok := p.at[where]; ok {
			break
		}
		where = parent(where)
	}
	at := p.at[where]
	return p.problemAt(at.line, at.column, path, format, args...)
}

func (p *problems) problemAt(line, column int, path, format string, args ...any) *Error {
	return &Error{File: p.file, Line: line, Column: column, Path: p.display(path), Problem: fmt.Sprintf(format, args...), key: path}
}

// display names the flag instead of the path that it filled.
func (p *problems) display(path string) string {
	for above := path; above != ""; above = parent(above) {
		if flag, ok := p.flags[above]; ok {
			return flag
		}
	}
	return path
}

// failed says that something is known to be wrong at the path, above or below
// it, so that one slip is told once.
func (p *problems) failed(path string) bool {
	if p.meant[path] {
		return true
	}
	return slices.ContainsFunc(p.list, func(e *Error) bool {
		return e.key == path || within(e.key, path) || within(path, e.key)
	})
}

// emptied says that the file gives an empty value and does not say by ${NAME:-} that it
// may be empty.
func (p *problems) emptied(path string) bool {
	at, written := p.at[path]
	return written && !strings.Contains(at.expanded, ":-}")
}

// quote shows a value as the file writes it: what a variable stands for may be
// a secret.
func (p *problems) quote(path, value string) string {
	if at := p.at[path]; at.expanded != "" {
		value = at.expanded
	}
	return quote(value)
}

// quote shows a value in quotes, its middle left out where it is long, and what
// is secret in an address left out too: it may stand where no address belongs.
func quote(value string) string {
	const most = 80
	value = maskURLs(value)
	if runes := []rune(value); len(runes) > most {
		value = string(runes[:most/2]) + "…" + string(runes[len(runes)-most/2:])
	}
	return strconv.Quote(value)
}

// err returns all problems in the order of the file, nil if there is none.
func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	slices.SortStableFunc(p.list, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return p.list
}

// parent is the path without its last step: of a[0].b it is a[0], of a[0] it is a.
func parent(path string) string {
	return path[:max(0, strings.LastIndexAny(path, ".["))]
}

// within says that a path lies below another one.
func within(path, above string) bool {
	rest, ok := strings.CutPrefix(path, above)
	return ok && above != "" && rest != "" && (rest[0] == '.' || rest[0] == '[')
}

// join makes the path of a key below another path.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
