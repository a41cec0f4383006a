package peers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"time"
)

const (
	// authorityYears is how long an authority lasts. To replace it takes three steps on
	// all hosts, so that is rare.
	authorityYears = 10
	// skew is by how much the clock of a host may be behind that of the one who signs.
	skew = time.Hour
)

// An authority signs the certificates of one cluster.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newAuthority makes one. It is not constrained to the names of the hosts, so that members
// can be added; and no authority below it can sign.
func newAuthority(cluster string, now time.Time) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:  pkix.Name{CommonName: "elect " + cluster},
		IsCA:     true,
		KeyUsage: x509.KeyUsageCertSign,

		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		NotBefore:             now.Add(-skew),
		NotAfter:              now.AddDate(authorityYears, 0, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &authority{cert: cert, key: key}, err
}

// readAuthority takes an authority from its two files.
func readAuthority(certText, keyText []byte) (*authority, error) {
	pair, err := tls.X509KeyPair(certText, keyText)
	if err != nil {
		return nil, fmt.Errorf("%w (the certificate of its own authority comes first there)", err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("its key is a %T, not one that elect peers init has made", pair.PrivateKey)
	}
	if !pair.Leaf.IsCA {
		return nil, errors.New("it is the certificate of a member, not that of an authority")
	}
	return &authority{cert: pair.Leaf, key: key}, nil
}

// lasts says whether the authority can sign.
func (a *authority) lasts(now time.Time) error {
	switch {
	case now.After(a.cert.NotAfter):
		return fmt.Errorf("the authority expired at %s, and nothing that it signed is accepted: make another one in a new folder, with elect peers init", stamp(a.cert.NotAfter))
	case now.Before(a.cert.NotBefore):
		return fmt.Errorf("the authority begins only at %s: this host's clock is wrong", stamp(a.cert.NotBefore))
	}
	return nil
}

// sign makes a key and a certificate for a member's host, or, without one, for a client
// with a name. The text has both. A certificate ends with its authority at the latest.
func (a *authority) sign(host, name string, valid time.Duration, now time.Time) (text []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		NotBefore:   now.Add(-min(skew, valid/10)), // short lives are for tests, and stay short
		NotAfter:    now.Add(valid),
	}
	if a.cert.NotAfter.Before(template.NotAfter) {
		template.NotAfter = a.cert.NotAfter
	}
	if len(name) <= 64 { // which is the most that X.509 has there; the host is below as well
		template.Subject.CommonName = name
	}
	if host != "" { // members call each other, so each is both
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = []net.IP{ip}
		} else {
			template.DNSNames = []string{host}
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	keyText, err := keyText(key)
	return append(keyText, certText(der)...), err
}

// signed returns the certificate of a text that sign has made, if it is still right.
func (a *authority) signed(text []byte, host string) (*x509.Certificate, error) {
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		return nil, err
	}
	if err := pair.Leaf.CheckSignatureFrom(a.cert); err != nil {
		return nil, err
	}
	if host != "" {
		return pair.Leaf, pair.Leaf.VerifyHostname(host)
	}
	return pair.Leaf, nil
}

// DueAt returns when a certificate, good from then until then, has a third of its life left.
func DueAt(from, until time.Time) time.Time { return until.Add(-until.Sub(from) / 3) }

func certText(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func keyText(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}

// stamp writes a time for people.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
