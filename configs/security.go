package configs

import (
	"errors"
	"io"
	"strings"
	"syscall"

	"sparkbridge/connect"
	"sparkbridge/sinks"
)

// secured adds what the token and tls keys say to a connection string. Where tls says
// nothing it is added all the same, since it has advice for others' TLS too.
func (s *Source) secured(remote connect.Remote) (connect.Remote, error) {
	remote, err := remote.WithToken(s.Token.Reveal())
	if err != nil {
		return connect.Remote{}, err
	}
	if s.TLS.Wanted() {
		return remote.WithTLS(security{s.TLS})
	}
	remote.TLS = security{s.TLS}
	return remote, nil
}

// security is how the connections to Spark are secured: as those of sinks are.
type security struct{ sinks.TLS }

// Advice is that of sinks, and what gRPC wants besides.
func (s security) Advice(err error) string {
	text := err.Error()
	hungUp := errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	switch {
	case strings.Contains(text, "no application protocol"), strings.Contains(text, "missing selected ALPN property"):
		return "this port does not offer HTTP/2 (ALPN h2), which gRPC wants: turn it on in the proxy"
	case hungUp && s.CertFile == "":
		return "the server hangs up; if it wants to see a certificate, set tls.cert_file and tls.key_file"
	case hungUp:
		return "the server hangs up; see whether it takes the certificate of tls.cert_file"
	}
	return sinks.TLSAdvice(err)
}

// checkTLS refuses the order not to use TLS where the connection uses it.
func (s *Source) checkTLS(p *problems, path string, remote connect.Remote) {
	at := join(path, "tls.enabled")
	if _, written := p.at[at]; !written || s.TLS.Enabled || !remote.UseSSL || p.failed(at) {
		return
	}
	p.add(at, "is false, and remote turns TLS on, by use_ssl or by a token for another machine: set it to true, or take it out")
}
