package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// forOthers is what only other programs use, which listen without a bridge.
var forOthers = []string{"listener/bus.go", "connect/events.go", "connect/streamwriter.go"}

// logged finds the messages that the program can log, but for those of level debug: the
// constant that a call of a logger's method begins with.
func logged(t *testing.T, root string) (messages []string) {
	t.Helper()
	first := map[string]int{"Info": 0, "Warn": 0, "Error": 0, "Log": 2} // where the message is
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{"integration", "connecttest", "sinktest", "sparkpb", "testdata", "tools"}, entry.Name()):
			return filepath.SkipDir
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		case slices.ContainsFunc(forOthers, func(name string) bool { return strings.HasSuffix(path, filepath.FromSlash(name)) }):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			at, ok := first[method.Sel.Name]
			if !ok || at >= len(call.Args) {
				return true
			}
			if text, ok := call.Args[at].(*ast.BasicLit); ok && text.Kind == token.STRING {
				message, err := strconv.Unquote(text.Value)
				if err != nil {
					t.Fatal(err)
				}
				messages = append(messages, message)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return messages
}

// Whoever reads a line of the log finds it explained, and no line is explained that is
// not written any more.
func TestEveryLogMessageIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, log, found := strings.Cut(string(doc), "\n## What the log says\n")
	if !found {
		t.Fatal("docs/operations.md has no part on the log")
	}
	messages := logged(t, "../..")
	if len(messages) < 30 {
		t.Fatalf("only %d messages were found", len(messages))
	}
	for _, message := range messages {
		if !strings.Contains(log, "`"+message+"`") {
			t.Errorf("docs/operations.md does not explain the log message %q", message)
		}
	}
	states := []string{"waiting", "attached", "taken", "polling", "lost", "closed"} // of the message bus
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)`").FindAllStringSubmatch(log, -1) {
		if !slices.Contains(messages, row[1]) && !slices.Contains(states, row[1]) {
			t.Errorf("docs/operations.md explains %q, which is not logged", row[1])
		}
	}
}
