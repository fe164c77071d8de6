package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"

	"sparkbridge/configs"
)

// guarded lets a request pass that has the token. Without a token it must name this
// machine by a loopback name: a page of elsewhere whose name was made to lead here
// (DNS rebinding) does not.
func (s *Server) guarded(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		switch {
		case s.o.Token != "" && !sameToken(given(r), s.o.Token):
			w.Header().Set("WWW-Authenticate", `Basic realm="sparkbridge: any user, http.token as the password", charset="UTF-8"`)
			http.Error(w, "the token is missing or wrong: send http.token as Authorization: Bearer, or as the password of Basic", http.StatusUnauthorized)
		case s.o.Token == "" && !local(r.Host):
			http.Error(w, "without a token only localhost is answered: set http.token to use another host name", http.StatusForbidden)
		default:
			next(w, r)
		}
	})
}

// given is the token that a request brings.
func given(r *http.Request) string {
	if _, password, ok := r.BasicAuth(); ok {
		return password
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// sameToken takes as long for every wrong token, whatever its length.
func sameToken(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

func local(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	return configs.IsLoopback(host)
}
