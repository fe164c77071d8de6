package nats

import (
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	const subject = "spark.{source}.{query}.{kind}"
	for name, test := range map[string]struct {
		url, subject string
		want         []string // parts of the error; none: valid
	}{
		"one server":        {"nats://localhost:4222", subject, nil},
		"several":           {"nats://a:4222, tls://b:4222", "events", nil},
		"without a scheme":  {"localhost", "spark.{kind}", nil},
		"credentials":       {"nats://me:s3cret@localhost", subject, nil},
		"no server":         {"", subject, []string{"url: is missing", "nats://localhost:4222"}},
		"another scheme":    {"http://u:s3cret@h:1", subject, []string{"http://***@h:1", `"http"`, "nats, tls, ws or wss"}},
		"not an address":    {"nats://u:s3cret@a b", subject, []string{"nats://***@a b", "nats://host:port"}},
		"one of two":        {"nats://a,nats://", subject, []string{`"nats://"`, "no host"}},
		"unknown name":      {"nats://a", "spark.{job}", []string{"subject:", "{job}", "{source}"}},
		"blank":             {"nats://a", "spark {kind}", []string{"subject:", "blank"}},
		"empty part":        {"nats://a", "spark..{kind}", []string{"subject:", "empty part"}},
		"dot at the end":    {"nats://a", "spark.", []string{"subject:", "empty part"}},
		"wildcard":          {"nats://a", "spark.>", []string{"subject:", "wildcard >"}},
		"server's own":      {"nats://a", "$SYS.{kind}", []string{"subject:", "begins with $"}},
		"all that is wrong": {"", "", []string{"url: is missing", "subject:"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := Config{URL: test.url, Subject: test.subject}.Validate()
			if (err != nil) != (test.want != nil) {
				t.Fatalf("err %v", err)
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not contain %q", err, part)
				}
			}
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%q shows the password", err)
			}
		})
	}
}

func TestPipelineAdmits(t *testing.T) {
	type event struct {
		query   string
		ordered bool
		want    bool
	}
	for name, events := range map[string][]event{
		"ordered streams":               {{"a", true, true}, {"a", true, true}, {"b", true, true}, {"a", true, true}},
		"one of each query":             {{"a", false, true}, {"b", false, true}, {"a", false, false}},
		"ordered behind another":        {{"a", false, true}, {"a", true, false}},
		"another behind ordered":        {{"a", true, true}, {"a", false, false}},
		"queries do not hold up others": {{"a", false, true}, {"b", true, true}, {"b", true, true}},
	} {
		var flight pipeline
		for i, e := range events {
			if got := flight.admits(e.query, e.ordered); got != e.want {
				t.Errorf("%s: event %d admitted: %v", name, i, got)
			}
		}
	}
}
