package configs

import (
	"net"
	"strconv"
	"strings"
)

// DefaultListen is where the bridge serves HTTP when the configuration does not say.
const DefaultListen = "127.0.0.1:4050"

// The values of HTTP.Listen that are no addresses.
const (
	listenAuto = "auto"
	listenOff  = "off"
)

// HTTP is the bridge's own page, API, metrics and health.
type HTTP struct {
	Listen string `yaml:"listen" default:"auto" required:"true" example:"127.0.0.1:4050" doc:"The address to serve on, host:port. auto: 127.0.0.1:4050, and if that is taken the bridge goes on without. off: none."`
	Token  Secret `yaml:"token" doc:"Guards the page and the API: Authorization: Bearer, or as the password of Basic with any user. Required where listen is not a loopback address. /livez, /readyz and /metrics are open."`
}

// Address is where to serve, empty for nowhere. optional says that it was not asked
// for, so that a port which is taken is no failure.
func (h HTTP) Address() (address string, optional bool) {
	switch h.Listen {
	case listenAuto:
		return DefaultListen, true
	case listenOff:
		return "", false
	default:
		return h.Listen, false
	}
}

func (h HTTP) check(p *problems) {
	const at = "http.listen"
	if p.failed(at) || h.Listen == listenOff || h.Listen == listenAuto || h.Listen == "" {
		return
	}
	host, port, err := net.SplitHostPort(h.Listen)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		p.add(at, "%s is no address: write host:port such as %s, or auto, or off", p.quote(at, h.Listen), DefaultListen)
		return
	}
	if !IsLoopback(host) && h.Token == "" && !p.failed("http.token") {
		p.add("http.token", "is missing: listen (%s) can be reached from other machines; set a token, or listen on %s", h.Listen, DefaultListen)
	}
}

// IsLoopback says that a host without its port names this machine only.
func IsLoopback(host string) bool {
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
