//go:build integration

package integration

import (
	"net/http"
	"strings"
	"testing"
)

// Readiness follows a required source that is lost and comes back; one that is not
// required shows, and changes nothing. Neither does a server that does not answer, a
// sink that is down, or a bus that is waited for. The process lives all the time.
func TestReadinessFollowsAnOutage(t *testing.T) {
	t.Parallel()
	const source = "ready"
	session, optional := openSession(t, shared.spark42.get(t)), openSession(t, shared.spark42.get(t))
	down := webhookSink(t, "down") // never opened
	config := configure(t, source, session.spark.Session(user, session.id), down)
	config.source()["attach"] = "first_query"
	config["sources"] = append(config["sources"].([]any), map[string]any{
		"name": "optional", "remote": session.spark.Session(user, optional.id), "attach": "at_once", "required": false,
	})
	page := web(t, config)
	bridge := startBridge(t, source, config)
	ready := func(what string, status int, parts ...string) {
		t.Helper()
		var said string
		again(t, what, func() bool {
			var got int
			got, said = ask(t, page+"/readyz?verbose")
			return got == status && (len(parts) == 0 || strings.Contains(said, parts[0]))
		})
		for _, part := range parts {
			if !strings.Contains(said, part) {
				t.Errorf("%s: no line %q in\n%s", what, part, said)
			}
		}
		if lives, _ := ask(t, page+"/livez"); lives != http.StatusOK {
			t.Errorf("%s: livez answers %d", what, lives)
		}
	}
	bridge.await("that it waits for a query", 0, isBus("waiting", "first_query"))
	ready("a source that waits", http.StatusOK, "[+] source ready: waiting")
	session.start("healthy")
	ready("an attached source", http.StatusOK, "[+] source ready: attached", "[+] journal: ok")
	ready("a sink that is down", http.StatusOK, "[-] sink down: failing")

	requireNoError(t, client(t, session.spark, optional.id).RemoveListener(within(t, patience)))
	ready("the loss of the optional source", http.StatusOK, "[+] source optional: lost (not required)", "[+] source ready: attached")
	requireNoError(t, client(t, session.spark, session.id).RemoveListener(within(t, patience)))
	ready("the loss of the required source", http.StatusServiceUnavailable, "[-] source ready: lost", "not ready")
	if got := scrape(t, page)[series("source_state", "source", source, "state", "lost")]; got != 1 {
		t.Errorf("source_state lost is %v", got)
	}
	ready("its return", http.StatusOK, "[+] source ready: attached")
	session.stop("healthy")
	bridge.stop()
}
