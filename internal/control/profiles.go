package control

import (
	"net/http"
	"net/http/pprof"
)

// registerProfiles adds Go's profiles of the process. They are on the socket alone:
// they show what is in memory, and one that runs slows the bridge.
func registerProfiles(mux *http.ServeMux) {
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
}
