package web

import (
	"encoding/json"
	"net/http"
)

// status answers with how everything is.
func (s *Server) status(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(s.o.Status()); err != nil {
		s.o.Logger.Debug("status was not sent", "err", err)
	}
}
