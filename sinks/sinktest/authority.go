package sinktest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sparkbridge/sinks"
)

// Authority vouches for the certificates of one test.
type Authority struct {
	// File holds the authority's own certificate.
	File string
	// Pool is the same, for servers in this process.
	Pool *x509.CertPool

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes an authority that nobody trusts yet.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	template := certificate("authority of " + t.Name())
	template.IsCA, template.KeyUsage = true, x509.KeyUsageCertSign
	key := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a := &Authority{File: filepath.Join(t.TempDir(), "ca.pem"), Pool: x509.NewCertPool(), cert: cert, key: key}
	a.Pool.AddCert(cert)
	writePEM(t, a.File, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

// Issue makes a certificate for a name, which a server can use on 127.0.0.1 too,
// and returns its files.
func (a *Authority) Issue(t testing.TB, name string) (certFile, keyFile string) {
	t.Helper()
	template := certificate(name)
	template.DNSNames, template.IPAddresses = []string{name}, []net.IP{net.IPv4(127, 0, 0, 1)}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	return a.issue(t, template)
}

// IssueNamed is Issue without the address: for a server that is known only by name.
func (a *Authority) IssueNamed(t testing.TB, name string) (certFile, keyFile string) {
	t.Helper()
	template := certificate(name)
	template.DNSNames = []string{name}
	return a.issue(t, template)
}

// IssueFor is Issue with the dates between which the certificate is in force.
func (a *Authority) IssueFor(t testing.TB, name string, from, to time.Time) (certFile, keyFile string) {
	t.Helper()
	template := certificate(name)
	template.NotBefore, template.NotAfter = from, to
	return a.issue(t, template)
}

func (a *Authority) issue(t testing.TB, template *x509.Certificate) (certFile, keyFile string) {
	t.Helper()
	key := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writePEM(t, certFile, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	writePEM(t, keyFile, &pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
	return certFile, keyFile
}

// Server is the configuration of a server of a name that takes any client.
func (a *Authority) Server(t testing.TB, name string) *tls.Config {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(a.Issue(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientCAs: a.Pool}
}

// Client is what a sink needs to be known to servers of this authority.
func (a *Authority) Client(t testing.TB, name string) sinks.TLS {
	t.Helper()
	certFile, keyFile := a.Issue(t, name)
	return sinks.TLS{CAFile: a.File, CertFile: certFile, KeyFile: keyFile}
}

func certificate(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), BasicConstraintsValid: true,
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func writePEM(t testing.TB, file string, block *pem.Block) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
}
