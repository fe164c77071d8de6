package web

import (
	"fmt"
	"net/http"
	"strings"

	"sparkbridge/internal/watch"
)

// livez says that the process works.
func (*Server) livez(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintln(w, "ok")
}

// readyz says whether the bridge does what it is for; with ?verbose also what each
// part of it does.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	ready, lines := readiness(s.o.Status())
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if !ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	if r.URL.Query().Has("verbose") {
		fmt.Fprintln(w, strings.Join(lines, "\n"))
	}
	fmt.Fprintln(w, map[bool]string{true: "ready", false: "not ready"}[ready])
}

// readiness demands that the journal can be written and that no required source is
// lost. A source that waits, polls or is closed is not lost, and a sink that fails
// delays nobody, so it shows and fails nothing. The reasons stay out of it: who may
// ask for health need not know addresses.
func readiness(st watch.Status) (ready bool, lines []string) {
	ready = st.Journal.Error == ""
	lines = append(lines, mark(ready)+" journal"+unless(!ready, "cannot be written"))
	for _, source := range st.Sources {
		ok := source.State != "lost"
		state := source.State
		if state == "" {
			state = "starting"
		}
		if !source.Required {
			state += " (not required)"
		}
		lines = append(lines, mark(ok || !source.Required)+" source "+source.Name+": "+state)
		for _, start := range source.Starts {
			if start.State == watch.StartFailed {
				lines = append(lines, mark(false)+" query "+source.Name+"/"+start.Name+": not started (does not count)")
			}
		}
		ready = ready && (ok || !source.Required)
	}
	for _, sink := range st.Sinks {
		state := "ok"
		switch {
		case sink.Stopped:
			state = fmt.Sprintf("stopped by its destination, %d events pending (does not count)", sink.Pending)
		case sink.Error != "":
			state = fmt.Sprintf("failing, %d events pending (does not count)", sink.Pending)
		}
		lines = append(lines, mark(sink.Error == "")+" sink "+sink.Name+": "+state)
	}
	return ready, lines
}

func mark(ok bool) string {
	if ok {
		return "[+]"
	}
	return "[-]"
}

func unless(bad bool, what string) string {
	if bad {
		return ": " + what
	}
	return ": ok"
}
