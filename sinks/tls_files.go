package sinks

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"
)

// CheckFiles reads the files and returns all that keeps them from being used, each as a
// *FileError. It is for the start, where somebody looks: files that change later are a
// matter of each connection.
func (t TLS) CheckFiles() error {
	var problems []error
	if t.CAFile != "" {
		trusted, err := t.authorities()
		problems = append(problems, err, t.dated("tls.ca_file", t.CAFile, trusted))
	}
	if t.CertFile != "" {
		pair, errs := t.pair()
		problems = append(problems, errs...)
		if pair.Leaf != nil {
			problems = append(problems, t.dated("tls.cert_file", t.CertFile, []*x509.Certificate{pair.Leaf}))
		}
	}
	return errors.Join(problems...)
}

func (t TLS) authorities() ([]*x509.Certificate, error) {
	text, err := ReadFile(t.CAFile)
	if err == nil && len(certificates(text)) == 0 {
		err = errNoCertificate
	}
	if err != nil {
		return nil, &FileError{"tls.ca_file", t.CAFile, err}
	}
	return certificates(text), nil
}

func (t TLS) certificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	pair, problems := t.pair()
	if len(problems) > 0 {
		return nil, problems[0]
	}
	return &pair, nil
}

// pair reads the certificate and its key.
func (t TLS) pair() (pair tls.Certificate, problems []error) {
	cert, err := ReadFile(t.CertFile)
	if err == nil && len(certificates(cert)) == 0 {
		err = errNoCertificate
	}
	if err != nil {
		problems = append(problems, &FileError{"tls.cert_file", t.CertFile, err})
	}
	key, err := ReadFile(t.KeyFile)
	if err == nil {
		err = checkKey(key)
	}
	if err != nil {
		problems = append(problems, &FileError{"tls.key_file", t.KeyFile, err})
	}
	if problems != nil {
		return tls.Certificate{}, problems
	}
	if pair, err = tls.X509KeyPair(cert, key); err != nil {
		err = fmt.Errorf("is not the key of the first certificate in %s (%w); set both to one pair", t.CertFile, err)
		return tls.Certificate{}, []error{&FileError{"tls.key_file", t.KeyFile, err}}
	}
	return pair, nil
}

var errNoCertificate = errors.New("has no certificate in it; it must be a PEM file")

// certificates returns those that a PEM file holds, without what is none.
func certificates(text []byte) (all []*x509.Certificate) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" || len(block.Headers) > 0 {
			continue
		}
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
			all = append(all, cert)
		}
	}
	return all
}

// checkKey wants a private key in a PEM file that can be read without asking anybody.
func checkKey(text []byte) error {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		switch {
		case block.Type == "ENCRYPTED PRIVATE KEY", block.Headers["DEK-Info"] != "":
			return errors.New("is locked with a passphrase; write it without one, such as by openssl pkey")
		case strings.HasSuffix(block.Type, "PRIVATE KEY"):
			return nil
		}
	}
	return errors.New("has no private key in it; it must be a PEM file")
}

// dated tells if none of the certificates of a file is in force.
func (t TLS) dated(key, path string, certs []*x509.Certificate) (err error) {
	for _, cert := range certs {
		switch now := time.Now(); {
		case now.After(cert.NotAfter):
			err = fmt.Errorf("%w: the certificate ended on %s; renew it", ErrOutdated, cert.NotAfter.Format(time.RFC3339))
		case now.Before(cert.NotBefore):
			err = fmt.Errorf("%w: the certificate begins on %s; see whether the clock is right", ErrOutdated, cert.NotBefore.Format(time.RFC3339))
		default:
			return nil
		}
	}
	if err == nil {
		return nil
	}
	return &FileError{key, path, err}
}
