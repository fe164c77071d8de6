package web

import (
	_ "embed"
	"net/http"
)

//go:embed page.html
var pageHTML []byte

// page is one file that needs nothing from elsewhere. Whatever comes from a job is
// put into it as text.
func (s *Server) page(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	if _, err := w.Write(pageHTML); err != nil {
		s.o.Logger.Debug("page was not sent", "err", err)
	}
}
