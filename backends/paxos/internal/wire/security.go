package wire

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/electkv/election/backends/paxos/internal/lease"
)

// secure returns the settings of both sides of a connection: certificate and
// authorities are the user's; what makes them mutual is not for the user to change.
func secure(user *tls.Config) (server, client *tls.Config, err error) {
	switch {
	case user == nil:
		return nil, nil, errors.New("no TLS: members need a certificate, its key and the authority that signed those of all members")
	case len(user.Certificates) == 0:
		return nil, nil, errors.New("no certificate: each member needs one, and its key")
	case user.RootCAs == nil:
		return nil, nil, errors.New("no certificate authority: name the one that signed the members' certificates; the system's are not taken, since anybody may have one of theirs")
	case user.InsecureSkipVerify:
		return nil, nil, errors.New("TLS without verification: whoever comes could vote")
	}
	base := &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           user.Certificates,
		RootCAs:                user.RootCAs,
		ClientCAs:              user.RootCAs,
		ClientAuth:             tls.RequireAndVerifyClientCert,
		SessionTicketsDisabled: true, // each connection shows its certificates
		Time:                   user.Time,
	}
	return base, base.Clone(), nil
}

// checkOwn verifies the own certificate as the other members will, so that a wrong one
// is found here and not by them.
func checkOwn(config *tls.Config, member lease.MemberID) error {
	leaf, err := x509.ParseCertificate(config.Certificates[0].Certificate[0])
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	between := x509.NewCertPool()
	for _, der := range config.Certificates[0].Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			between.AddCert(c)
		}
	}
	uses := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if member != "" {
		uses = append(uses, x509.ExtKeyUsageServerAuth)
		if err := leaf.VerifyHostname(hostOf(member)); err != nil {
			return fmt.Errorf("certificate: %w; it needs the host of the member's address as a subject alternative name", err)
		}
	}
	for _, use := range uses {
		options := x509.VerifyOptions{Roots: config.RootCAs, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{use}}
		if config.Time != nil {
			options.CurrentTime = config.Time()
		}
		if _, err := leaf.Verify(options); err != nil {
			return fmt.Errorf("certificate: %w; it must be signed by the given authority, for use by servers and clients", err)
		}
	}
	return nil
}
