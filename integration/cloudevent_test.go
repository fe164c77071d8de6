//go:build integration

package integration

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"regexp"
	"strings"
	"testing"
	"time"
)

const (
	sparkType  = "org.apache.spark.sql.streaming.query."
	bridgeType = "dev.sparkbridge."
)

func kindOfType(name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(name, sparkType), bridgeType)
}

// checkCloudEvent holds an event that arrived against the table of attributes.
func checkCloudEvent(t *testing.T, sink, source, session string, want expected, got arrival) {
	t.Helper()
	attributes := maps.Clone(got.attributes)
	for name, form := range map[string]*regexp.Regexp{"sequence": sequence, "recordedtime": rfc3339, "time": rfc3339} {
		if !form.MatchString(attributes[name]) {
			t.Errorf("%s: %s of %s is %q", sink, name, want.id, attributes[name])
		}
		if name != "time" || want.at.IsZero() {
			delete(attributes, name)
		}
	}
	if !want.at.IsZero() && !instant(t, attributes["time"]).Equal(want.at) {
		t.Errorf("%s: time of %s is %s, want %s", sink, want.id, attributes["time"], want.at.Format(time.RFC3339Nano))
	}
	delete(attributes, "time")
	if wanted := wantAttributes(source, session, want); !maps.Equal(attributes, wanted) {
		t.Errorf("%s: attributes of %s are\n%v, want\n%v", sink, want.id, attributes, wanted)
	}
	checkPayload(t, sink, want, got.payload)
}

var (
	sequence = regexp.MustCompile(`^\d{20}$`)
	rfc3339  = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`)
)

// wantAttributes are all attributes but those that depend on the clock and the journal.
func wantAttributes(source, session string, e expected) map[string]string {
	all := map[string]string{
		"specversion": "1.0", "id": e.id, "source": "/spark/" + source + "/" + e.run.ID, "type": sparkType + e.kind,
		"subject": label(e), "datacontenttype": "application/json", "partitionkey": e.run.ID,
		"sparkqueryid": e.run.ID, "sparkrunid": e.run.RunID, "sparkorigin": "bus", "sparkuserid": user, "sparksessionid": session,
	}
	if e.run.Name != "" {
		all["sparkqueryname"] = e.run.Name
	}
	switch e.kind {
	case "started":
		all["sparkorigin"] = "inferred"
	case "progress":
		all["sparkbatchid"] = e.batch
	case "terminated":
		all["sparkoutcome"] = "stopped"
		if e.exception != "" {
			all["sparkoutcome"] = "failed"
		}
		if e.class != "" {
			all["sparkerrorclass"] = e.class
		}
	}
	return all
}

// label is what people call a query.
func label(e expected) string {
	if e.run.Name != "" {
		return e.run.Name
	}
	return e.run.ID
}

func checkPayload(t *testing.T, sink string, want expected, payload []byte) {
	t.Helper()
	var document struct {
		ID, RunID             string
		Name                  *string
		Exception             string
		ErrorClassOnException string
	}
	if err := json.Unmarshal(payload, &document); err != nil {
		t.Errorf("%s: payload of %s: %v", sink, want.id, err)
		return
	}
	if document.ID != want.run.ID || document.RunID != want.run.RunID {
		t.Errorf("%s: payload of %s is of query %s, run %s", sink, want.id, document.ID, document.RunID)
	}
	if document.Exception != want.exception || document.ErrorClassOnException != want.class {
		t.Errorf("%s: payload of %s has exception %.200q of class %q, want %.200q of class %q", sink, want.id,
			document.Exception, document.ErrorClassOnException, want.exception, want.class)
	}
	if want.kind == "started" && want.run.Name != "" && (document.Name == nil || *document.Name != want.run.Name) {
		t.Errorf("%s: payload of %s lacks the name %q: %s", sink, want.id, want.run.Name, payload)
	}
}

// wantPlace is where each kind of sink has an event, and under which key.
func wantPlace(s *sink, source string, e expected) (place, key string) {
	switch {
	case s.config["nats"] != nil:
		return "spark." + source + "." + token(label(e)) + "." + e.kind, e.id
	case s.config["kafka"] != nil:
		return source + "-" + s.name, e.run.ID
	default:
		return "/events", e.id
	}
}

var unsafe = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// token is a name as part of a NATS subject.
func token(name string) string {
	safe := unsafe.ReplaceAllString(name, "_")
	if safe == name {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return safe + "-" + hex.EncodeToString(sum[:])[:6]
}
