package wire

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
)

// Files are what was read of the files of a certificate, its key and its authority, in PEM.
// The zero value has read nothing yet.
type Files struct {
	mu     sync.Mutex
	texts  [3][]byte // of which the settings were made
	config *tls.Config
}

// TLS returns the settings that the files make, for [Config].GetTLS: the same pointer for as
// long as none of the files has changed. If key is empty, it is in the file of the
// certificate. It may be called by several goroutines at the same time, always with the
// same names.
func (f *Files) TLS(cert, key, ca string) (*tls.Config, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	texts, err := readTexts(cert, key, ca)
	if err != nil {
		return nil, err
	}
	if f.config != nil && slices.EqualFunc(texts[:], f.texts[:], bytes.Equal) {
		return f.config, nil
	}
	pair, err := tls.X509KeyPair(texts[0], texts[1])
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", cert, cmp.Or(key, cert), err)
	}
	authority, err := pool(texts[2])
	if err != nil {
		return nil, fmt.Errorf("authority %s: %w", ca, err)
	}
	f.texts = texts
	f.config = &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, RootCAs: authority}
	return f.config, nil
}

// readTexts returns the certificate, the key and the authority. What is in one file was there at
// the same time.
func readTexts(cert, key, ca string) (texts [3][]byte, err error) {
	if texts[0], err = os.ReadFile(cert); err != nil {
		return texts, fmt.Errorf("certificate: %w", err)
	}
	texts[1] = texts[0]
	if key != "" && key != cert {
		if texts[1], err = os.ReadFile(key); err != nil {
			return texts, fmt.Errorf("key: %w", err)
		}
	}
	if texts[2], err = os.ReadFile(ca); err != nil {
		return texts, fmt.Errorf("authority: %w", err)
	}
	return texts, nil
}

// pool returns the certificates of a file: all of them, so that one that is half written
// is noticed.
func pool(text []byte) (*x509.CertPool, error) {
	all, found := x509.NewCertPool(), false
	for {
		var block *pem.Block
		block, text = pem.Decode(text)
		switch {
		case block == nil && (bytes.HasPrefix(text, []byte("-")) || bytes.Contains(text, []byte("\n-"))):
			return nil, errors.New("it ends in the middle")
		case block == nil && !found:
			return nil, errors.New("there is no certificate in it")
		case block == nil:
			return all, nil
		case block.Type != "CERTIFICATE":
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		all.AddCert(cert)
		found = true
	}
}
