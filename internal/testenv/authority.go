//go:build unix

package testenv

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// An Authority signs certificates for one test.
type Authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes a certificate authority.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t}
	a.key = a.newKey()
	der := a.sign(&x509.Certificate{
		Subject:               pkix.Name{CommonName: "test authority"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
		NotAfter:              time.Now().AddDate(10, 0, 0),
	}, nil, &a.key.PublicKey)
	cert, err := x509.ParseCertificate(der)
	a.must(err)
	a.cert = cert
	return a
}

// Certificate returns a certificate, with its key, for hosts: names or addresses. It
// is good for servers and clients.
func (a *Authority) Certificate(hosts ...string) tls.Certificate {
	a.t.Helper()
	key := a.newKey()
	return tls.Certificate{Certificate: [][]byte{a.sign(forHosts(hosts), a.cert, &key.PublicKey)}, PrivateKey: key}
}

// ServerOnly returns a certificate that is not good for clients.
func (a *Authority) ServerOnly(hosts ...string) tls.Certificate {
	a.t.Helper()
	key, template := a.newKey(), forHosts(hosts)
	template.ExtKeyUsage = template.ExtKeyUsage[:1]
	return tls.Certificate{Certificate: [][]byte{a.sign(template, a.cert, &key.PublicKey)}, PrivateKey: key}
}

// Until returns a certificate that is good until then.
func (a *Authority) Until(end time.Time, hosts ...string) tls.Certificate {
	a.t.Helper()
	key, template := a.newKey(), forHosts(hosts)
	template.NotAfter = end
	return tls.Certificate{Certificate: [][]byte{a.sign(template, a.cert, &key.PublicKey)}, PrivateKey: key}
}

// Config returns settings with a certificate for hosts, and the authority as the only
// one that is trusted.
func (a *Authority) Config(hosts ...string) *tls.Config {
	a.t.Helper()
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{a.Certificate(hosts...)}, RootCAs: a.Pool()}
}

// Pool returns the authority as one to trust.
func (a *Authority) Pool() *x509.CertPool { return Pool(a) }

// Pool returns authorities as those to trust.
func Pool(trusted ...*Authority) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, a := range trusted {
		pool.AddCert(a.cert)
	}
	return pool
}

// Files writes a certificate for hosts, its key and the authority's certificate to
// files in a folder of the test's own.
func (a *Authority) Files(hosts ...string) (cert, key, ca string) {
	a.t.Helper()
	dir := a.t.TempDir()
	pair := a.Certificate(hosts...)
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	a.must(err)
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		a.must(os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return path
	}
	return write("cert.pem", "CERTIFICATE", pair.Certificate[0]), write("key.pem", "PRIVATE KEY", der), write("ca.pem", "CERTIFICATE", a.cert.Raw)
}

// Pair returns the text of a file that has a certificate, which is good until then, and its
// key.
func (a *Authority) Pair(end time.Time, hosts ...string) []byte {
	a.t.Helper()
	pair := a.Until(end, hosts...)
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	a.must(err)
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	return append(key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})...)
}

// ReadConfig returns the settings of which [Authority.Files] wrote the files, for the
// process that is told their paths.
func ReadConfig(cert, key, ca string) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate", ca)
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, RootCAs: pool}, nil
}

// FreeAddr returns an address, host:port, of the loopback interface at which a server
// can listen, and again after it has ended, until the test ends.
func FreeAddr(t testing.TB) string {
	t.Helper()
	p, err := takePort()
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	t.Cleanup(p.release)
	return p.addr()
}

func forHosts(hosts []string) *x509.Certificate {
	template := &x509.Certificate{
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return template
}

// sign signs with the authority's key; without a parent, the authority itself.
func (a *Authority) sign(template, parent *x509.Certificate, key *ecdsa.PublicKey) []byte {
	a.t.Helper()
	if parent == nil {
		parent = template
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	a.must(err)
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-time.Hour)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(24 * time.Hour)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key, a.key)
	a.must(err)
	return der
}

func (a *Authority) newKey() *ecdsa.PrivateKey {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	a.must(err)
	return key
}

func (a *Authority) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatalf("testenv: authority: %v", err)
	}
}
