package configs

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestFromFlags(t *testing.T) {
	remote := "sc://h/;user_id=u;session_id=" + sessionA
	cfg, err := FromFlags(Flags{
		Remote: remote, NATS: []string{"nats://a", "nats://b"}, Kafka: []string{"a:1,b:2", "c:3/topic"}, Webhook: []string{"http://w/x"}, Journal: "j",
	}, environment(nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range cfg.Sinks {
		names = append(names, s.Name)
	}
	if want := []string{"nats", "nats-2", "kafka", "kafka-2", "webhook"}; !reflect.DeepEqual(names, want) {
		t.Errorf("the sinks are called %v, want %v", names, want)
	}
	checks := map[string]bool{
		"source":    len(cfg.Sources) == 1 && cfg.Sources[0].Name == "default" && cfg.Sources[0].Remote.Reveal() == remote && cfg.Sources[0].Attach == AttachFirstQuery,
		"journal":   cfg.Journal.Dir == "j" && cfg.Journal.MaxBytes == 10<<30,
		"nats":      cfg.Sinks[1].NATS.URL == "nats://b" && cfg.Sinks[1].NATS.JetStream,
		"brokers":   reflect.DeepEqual(cfg.Sinks[2].Kafka.Brokers, []string{"a:1", "b:2"}),
		"topics":    cfg.Sinks[2].Kafka.Topic == "spark-query-events" && cfg.Sinks[3].Kafka.Topic == "topic",
		"webhook":   cfg.Sinks[4].Webhook.URL == "http://w/x",
		"retry":     cfg.Sinks[4].Retry == parse(t, good).Sinks[0].Retry,
		"log level": cfg.Log == parse(t, good).Log,
	}
	for what, ok := range checks {
		if !ok {
			t.Errorf("%s is not as the flags say: %+v", what, cfg)
		}
	}
}

// Spark's own variables fill in what the flags do not say, and only that.
func TestFromFlagsEnvironment(t *testing.T) {
	variables := map[string]string{"SPARK_REMOTE": "sc://env;x", "SPARK_USER": "jörg a=b;c", "SPARK_CONNECT_AUTHENTICATE_TOKEN": "from-env"}
	for name, c := range map[string]struct{ env, flag, host, user, token string }{
		"all from the environment": {"sc://env/;session_id=" + sessionA, "", "env", "jörg a=b;c", "from-env"},
		"no slash":                 {"", "sc://flag/;session_id=" + sessionA + ";", "flag", "jörg a=b;c", "from-env"},
		"flag first":               {"sc://env/;session_id=" + sessionA, "sc://flag/;session_id=" + sessionB, "flag", "jörg a=b;c", "from-env"},
		"said already":             {"", "sc://flag/;user_id=u;token=t;session_id=" + sessionB, "flag", "u", "t"},
	} {
		t.Run(name, func(t *testing.T) {
			variables["SPARK_REMOTE"] = c.env
			cfg, err := FromFlags(Flags{Remote: c.flag, NATS: []string{"nats://a"}}, environment(variables, nil))
			if err != nil {
				t.Fatal(err)
			}
			got, err := cfg.Sources[0].ParsedRemote()
			if err != nil {
				t.Fatal(err)
			}
			if got.Host != c.host || got.UserID != c.user || got.Token != c.token {
				t.Errorf("got %s as %q with token %q, want %s as %q with %q", got.Host, got.UserID, got.Token, c.host, c.user, c.token)
			}
		})
	}
}

func TestFromFlagsProblems(t *testing.T) {
	valid := "sc://h/;user_id=u;session_id=" + sessionA
	for name, c := range map[string]struct {
		flags Flags
		env   map[string]string
		want  []string
	}{
		"nothing":         {Flags{}, nil, []string{"--remote: is required: name at least one", "--nats, --kafka or --webhook: is required: name at least one"}},
		"bad environment": {Flags{NATS: []string{"nats://h"}}, map[string]string{"SPARK_REMOTE": "local[2]"}, []string{"SPARK_REMOTE: scheme is not sc://; write sc://host:15002"}},
		"no slash":        {Flags{Remote: "sc://h", NATS: []string{"nats://h"}}, map[string]string{"SPARK_USER": "u"}, []string{"--remote: has no session_id: add the job's own, as in ;user_id=etl;session_id=<UUID>, or set create_session to make a session"}},
		"each flag": {Flags{Remote: valid, NATS: []string{"http://u:hunter2@h"}, Kafka: []string{"h"}, Webhook: []string{"ftp://h/hunter2"}}, nil, []string{
			`--nats: "http://***@h" has the scheme "http"; use nats, tls, ws or wss`,
			`--kafka: "h" is not an address; write it as host:port`,
			`--webhook: "ftp://h/…" has scheme "ftp"; write http://… or https://…`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := FromFlags(c.flags, environment(c.env, nil))
			var all Errors
			if !errors.As(err, &all) {
				t.Fatalf("got error %v, want problems", err)
			}
			same(t, strings.Split(all.Error(), "\n"), c.want)
		})
	}
}
