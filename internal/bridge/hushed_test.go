package bridge

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"sparkbridge/internal/journal"
)

// A reason may repeat what a server or a proxy has said: the log shows it without
// credentials, the journal has it whole, and a report has none either.
func TestReasonsShowNoCredentials(t *testing.T) {
	const reason = "for the server: refused by https://u:leak-pw@proxy"
	var logged bytes.Buffer
	w := &world{t: t, dir: t.TempDir()}
	j, err := journal.Open(w.dir, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &states{source: "etl", journal: j, log: slog.New(slog.NewTextHandler(&logged, nil))}
	s.tell(t.Context(), busWaiting, reason)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if text := logged.String(); !strings.Contains(text, "https://u:***@proxy") || strings.Contains(text, "leak-") {
		t.Errorf("the log says %s", text)
	}
	if all := w.events(); len(all) != 1 || !strings.Contains(string(all[0].Payload), reason) {
		t.Errorf("the journal has %+v", all)
	}
	if text := oneLine(reason + "\n"); text != "for the server: refused by https://u:***@proxy" {
		t.Errorf("a report says %s", text)
	}
}
