package webhook

import (
	"cmp"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
)

const (
	hidden = "***"
	// What is shorter is not hidden wherever it turns up; parts of a path may be words.
	shortestEcho, shortestPart = 4, 12
)

// echoes hides the credentials of the configuration in what a receiver answers: many
// repeat the path or the headers of a request that they refuse.
func (c Config) echoes(target *url.URL) *strings.Replacer {
	said := []string{c.Bearer.Reveal(), c.Basic.Password.Reveal(), target.EscapedPath(), target.Path, target.RawQuery}
	for part := range strings.SplitSeq(target.Path, "/") {
		if len(part) >= shortestPart {
			said = append(said, part)
		}
	}
	for _, values := range target.Query() {
		said = append(said, values...)
	}
	if target.User != nil {
		password, _ := target.User.Password()
		said = append(said, password, target.User.Username(), target.User.String(), base64.StdEncoding.EncodeToString([]byte(target.User.Username()+":"+password)))
	}
	for _, values := range c.header() {
		for _, value := range values {
			said = append(append(said, value), strings.Fields(value)...)
		}
	}
	slices.SortFunc(said, func(a, b string) int { return cmp.Compare(len(b), len(a)) }) // a whole before its parts
	var pairs []string
	for _, text := range said {
		if len(text) >= shortestEcho && !slices.Contains(schemes, strings.ToLower(text)) {
			pairs = append(pairs, text, hidden)
		}
	}
	return strings.NewReplacer(pairs...)
}

// schemes are words of an Authorization header that are no credentials.
var schemes = []string{"bearer", "basic", "token", "apikey", "digest"}
