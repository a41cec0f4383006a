package paxoskv

import (
	"crypto/tls"
	"fmt"
	"time"

	"github.com/electkv/election/internal/wire"
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

	read wire.Files
}

// TLS returns the settings that the files make, for [Options].GetTLS. It may be called by
// several goroutines at the same time.
func (f *Files) TLS() (*tls.Config, error) { return f.read.TLS(f.Cert, f.Key, f.CA) }

// Validity verifies the files as they are now, as the member with this ID has them verified,
// or, if it is empty, a client. It returns from when until when the certificate is good,
// which it is no longer than its authority's.
func (f *Files) Validity(id string) (from, until time.Time, err error) {
	config, err := f.TLS()
	if err == nil {
		from, until, err = wire.Validity(config, id)
	}
	if err != nil {
		return time.Time{}, time.Time{}, fmt.Errorf("paxoskv: %w", err)
	}
	return from, until, nil
}
