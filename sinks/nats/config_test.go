package nats

import (
	"strings"
	"testing"

	"sparkbridge/sinks"
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

func TestValidateAccess(t *testing.T) {
	const url = "nats://localhost"
	for want, cfg := range map[string]Config{
		"token: is set beside a user or token in url; keep one of":  {URL: "nats://hunter2@localhost", Token: "hunter2"},
		"user: is set beside token; keep one of them":               {URL: url, Token: "hunter2", User: "u", Password: "hunter2"},
		"creds_file: is set beside nkey_file":                       {URL: url, NKeyFile: "a", CredsFile: "b"},
		"creds_file: is set beside token and user and nkey_file;":   {URL: url, Token: "hunter2", User: "u", NKeyFile: "a", CredsFile: "b"},
		"password: is missing":                                      {URL: url, User: "u"},
		"user: is missing":                                          {URL: url, Password: "hunter2"},
		"tls.key_file: is missing":                                  {URL: url, TLS: sinks.TLS{CertFile: "a"}},
		`url: "ws://localhost" is without TLS, and tls is set`:      {URL: "ws://localhost", TLS: sinks.TLS{Enabled: true}},
		"stream.create: is not true":                                {URL: url, JetStream: true, Stream: Stream{Name: "s"}},
		"stream.create: there are no streams with jetstream: false": {URL: url, Stream: Stream{Name: "s", Create: true}},
		"stream.name: is missing":                                   {URL: url, JetStream: true, Stream: Stream{Create: true}},
		`stream.name: "a.b" may not hold blanks`:                    {URL: url, JetStream: true, Stream: Stream{Name: "a.b", Create: true}},
		"stream.replicas: 7 is none of 1 to 5":                      {URL: url, JetStream: true, Stream: Stream{Name: "s", Create: true, Replicas: 7}},
	} {
		cfg.Subject = "events"
		err := cfg.Validate()
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for _, cfg := range []Config{
		{Token: "t"}, {User: "u", Password: "p"}, {NKeyFile: "a"}, {CredsFile: "b", TLS: sinks.TLS{CertFile: "c", KeyFile: "k"}},
		{JetStream: true, Stream: Stream{Name: "s", Create: true, Replicas: 3}},
	} {
		cfg.URL, cfg.Subject = "nats://a,tls://b", "events"
		if err := cfg.Validate(); err != nil {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}
