package configs

import (
	"strings"
	"testing"
)

func TestHTTPAddress(t *testing.T) {
	for text, want := range map[string]struct {
		address  string
		optional bool
	}{
		"":                                       {DefaultListen, true},
		"http: {token: s3cret}\n":                {DefaultListen, true},
		"http: {listen: \"off\"}\n":              {"", false},
		"http: {listen: off}\n":                  {"", false},
		"http: {listen: \"[::1]:80\"}\n":         {"[::1]:80", false},
		"http: {listen: \"localhost:0\"}\n":      {"localhost:0", false},
		"http: {listen: \":80\", token: long}\n": {":80", false},
	} {
		address, optional := parse(t, good+text).HTTP.Address()
		if address != want.address || optional != want.optional {
			t.Errorf("%q: %q, %v", text, address, optional)
		}
	}
}

func TestHTTPProblems(t *testing.T) {
	for listen, want := range map[string]string{
		"\"4050\"":            "http.listen: \"4050\" is no address",
		"\"localhost:http\"":  "is no address",
		"\"127.0.0.1:99999\"": "is no address",
		"\"0.0.0.0:1\"":       "http.token: is missing",
		"\":4050\"":           "http.token: is missing",
		"host.org:1":          "http.token: is missing",
		"\"\"":                "http.listen",
	} {
		got := problemsOf(t, good+"http: {listen: "+listen+"}\n", environment(nil, nil))
		if len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("listen %s: %q", listen, got)
		}
	}
}

func TestSourcesAreRequiredUnlessSaid(t *testing.T) {
	if !parse(t, good).Sources[0].Required {
		t.Error("a source is not required by default")
	}
	if parse(t, strings.Replace(good, "sinks:", "    required: false\nsinks:", 1)).Sources[0].Required {
		t.Error("required: false is not taken")
	}
}
