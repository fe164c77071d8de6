package sinks

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
)

// TLS says how connections to a destination are secured. The zero value asks for
// nothing. Files are in PEM, must be there at the start, and are read for each
// connection, so that renewed ones are taken without a restart.
type TLS struct {
	// Enabled asks for TLS where the address does not say so; the other fields imply it.
	Enabled bool `yaml:"enabled" default:"false" doc:"true: use TLS. The other keys of tls imply it, and cannot stand beside false."`
	// CAFile holds the authorities to trust, in place of those of the machine.
	CAFile string `yaml:"ca_file" path:"true" example:"/etc/bridge/ca.pem" doc:"PEM file with the authorities that may vouch for the server; those of the machine where it is left out."`
	// CertFile and KeyFile are the certificate and key to show to the server.
	CertFile string `yaml:"cert_file" path:"true" example:"/etc/bridge/client.pem" doc:"PEM file with the certificate to show to the server, and those between it and its authority."`
	KeyFile  string `yaml:"key_file" path:"true" example:"/etc/bridge/client-key.pem" doc:"PEM file with the key of cert_file, without a passphrase."`
	// ServerName is the name that the server's certificate must have, in place
	// of the host that was connected to.
	ServerName string `yaml:"server_name" example:"broker.internal" doc:"The name that the certificate of the server must have; its host where it is left out."`
}

// Wanted tells whether anything asks for TLS.
func (t TLS) Wanted() bool { return t != TLS{} }

// Validate returns what is wrong with the configuration. It does not read the
// files, which may come and go; CheckFiles does. The errors begin with tls and the name of the field.
func (t TLS) Validate() error {
	switch {
	case t.CertFile != "" && t.KeyFile == "":
		return errors.New("tls.key_file: is missing; set it to the key of cert_file, or leave both out")
	case t.CertFile == "" && t.KeyFile != "":
		return errors.New("tls.cert_file: is missing; set it to the certificate of key_file, or leave both out")
	}
	return nil
}

// Config reads the files and returns a configuration for one connection. An error is
// a *FileError.
func (t TLS) Config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CAFile != "" {
		trusted, err := t.authorities()
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		for _, cert := range trusted {
			config.RootCAs.AddCert(cert)
		}
	}
	if t.CertFile == "" {
		return config, nil
	}
	if _, err := t.certificate(nil); err != nil {
		return nil, err
	}
	// Shown whatever authorities the server names: its own refusal says more than
	// its complaint that there was none.
	config.GetClientCertificate = t.certificate
	return config, nil
}

// TLSAdvice is what to do about an error of a TLS connection, empty for others.
func TLSAdvice(err error) string {
	var remote *net.OpError
	switch {
	case errors.As(err, new(x509.HostnameError)):
		return "connect to a name that the certificate of the server is for, or set tls.server_name to it"
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return "set tls.ca_file to the authority of the server's certificate, or let this machine trust it (SSL_CERT_FILE)"
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return "renew the certificate of the server, or correct the clock of this machine"
	case errors.As(err, new(tls.RecordHeaderError)):
		return "this port does not speak TLS: take the one that does, or leave TLS out"
	case errors.As(err, &remote) && remote.Op == "remote error":
		return "the server refuses the handshake: set tls.cert_file and tls.key_file to a certificate that it takes"
	}
	return ""
}
