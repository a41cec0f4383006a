package group

import (
	"crypto/tls"

	"github.com/electkv/election/internal/wire"
)

// Files are where a process has its certificate, its key and its authority, in PEM. The
// command elect peers init makes them.
//
//	files := &group.Files{Cert: "elect.pem", CA: "ca.pem"}
//	m, err := group.New(&group.Options{GetTLS: files.TLS, …})
//
// New files are taken without a restart: they are read before each connection. It does not
// matter in which order they are replaced. While they do not fit together, or one is written,
// what they had before stays in use.
//
// The fields must not be changed once TLS was called.
type Files struct {
	// Cert has the certificate, followed by those between it and the authority, if there
	// are any.
	Cert string

	// Key has the certificate's key. If it is empty, Cert has it too.
	Key string

	// CA has the certificate of the authority. For as long as processes move from one
	// authority to another, it has both.
	CA string

	read wire.Files
}

// TLS returns the settings that the files make, for [Options].GetTLS. It may be called by
// several goroutines at the same time.
func (f *Files) TLS() (*tls.Config, error) { return f.read.TLS(f.Cert, f.Key, f.CA) }
