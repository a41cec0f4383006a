package paxoskv

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
	"time"

	"github.com/electkv/election/backends/paxos/internal/lease"
	"github.com/electkv/election/backends/paxos/internal/wire"
)

// Files are where a member has its certificate, its key and its authority, in PEM:
//
//	files := &paxoskv.Files{Cert: "member.pem", CA: "ca.pem"}
//	store, err := paxoskv.New(&paxoskv.Options{GetTLS: files.TLS, …})
//
// The member takes new files without a restart: it reads them before each connection. It
// does not matter in which order they are replaced. While they do not fit together, or one
// is written, what they had before stays in use.
//
// The fields must not be changed once TLS was called.
type Files struct {
	// Cert has the certificate, followed by those between it and the authority, if there
	// are any.
	Cert string

	// Key has the certificate's key. If it is empty, Cert has it too, and both are replaced
	// in one step.
	Key string

	// CA has the certificate of the authority. For as long as members move from one
	// authority to another, it has both.
	CA string

	mu     sync.Mutex
	texts  [3][]byte // of which the settings were made
	config *tls.Config
}

// TLS returns the settings that the files make, for [Options].GetTLS. It may be called by
// several goroutines at the same time.
func (f *Files) TLS() (*tls.Config, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	texts, err := f.read()
	if err != nil {
		return nil, err
	}
	if f.config != nil && slices.EqualFunc(texts[:], f.texts[:], bytes.Equal) {
		return f.config, nil
	}
	cert, err := tls.X509KeyPair(texts[0], texts[1])
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", f.Cert, cmp.Or(f.Key, f.Cert), err)
	}
	authority, err := pool(texts[2])
	if err != nil {
		return nil, fmt.Errorf("authority %s: %w", f.CA, err)
	}
	f.texts = texts
	f.config = &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}, RootCAs: authority}
	return f.config, nil
}

// Validity verifies the files as they are now, as the member with this ID has them verified,
// or, if it is empty, a client. It returns from when until when the certificate is good,
// which it is no longer than its authority's.
func (f *Files) Validity(id string) (from, until time.Time, err error) {
	config, err := f.TLS()
	if err != nil {
		return time.Time{}, time.Time{}, fmt.Errorf("paxoskv: %w", err)
	}
	member := lease.MemberID("")
	if id != "" {
		member, err = wire.Member(id)
	}
	if err == nil {
		from, until, err = wire.Validity(config, member)
	}
	if err != nil {
		return time.Time{}, time.Time{}, fmt.Errorf("paxoskv: %w", err)
	}
	return from, until, nil
}

// read returns the certificate, the key and the authority. What is in one file was there at
// the same time.
func (f *Files) read() (texts [3][]byte, err error) {
	if texts[0], err = os.ReadFile(f.Cert); err != nil {
		return texts, fmt.Errorf("certificate: %w", err)
	}
	texts[1] = texts[0]
	if f.Key != "" && f.Key != f.Cert {
		if texts[1], err = os.ReadFile(f.Key); err != nil {
			return texts, fmt.Errorf("key: %w", err)
		}
	}
	if texts[2], err = os.ReadFile(f.CA); err != nil {
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
