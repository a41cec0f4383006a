package wire

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"
)

// security makes the settings of connections of the user's. What makes them mutual is not
// for the user to change; what else the user has set applies, or is refused.
type security struct {
	user   *tls.Config
	base   *tls.Config // of both sides, but for certificates
	member string

	from, until time.Time // of the first of the user's certificates, if there is one
}

func secure(user *tls.Config, member string) (*security, error) {
	if err := checkUser(user, member); err != nil {
		return nil, err
	}
	base := user.Clone()
	base.MinVersion = tls.VersionTLS13
	base.ClientCAs, base.ClientAuth = user.RootCAs, tls.RequireAndVerifyClientCert
	base.SessionTicketsDisabled = true // each connection shows its certificates
	base.Certificates = nil            // show has them
	s := &security{user: user, base: base, member: member}
	if len(user.Certificates) > 0 {
		if err := s.checkFirst(&user.Certificates[0]); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// checkUser says what is wrong with the user's settings.
func checkUser(user *tls.Config, member string) error {
	switch {
	case user == nil:
		return errors.New("no TLS: members need a certificate, its key and the authority that signed those of all members")
	case len(user.Certificates) == 0 && user.GetCertificate == nil && user.GetClientCertificate == nil:
		return errors.New("no certificate: each member needs one, and its key")
	case len(user.Certificates) == 0 && user.GetClientCertificate == nil:
		return errors.New("no GetClientCertificate beside GetCertificate: members also call each other")
	case len(user.Certificates) == 0 && user.GetCertificate == nil && member != "":
		return errors.New("no GetCertificate beside GetClientCertificate: members are also called")
	case user.RootCAs == nil:
		return errors.New("no certificate authority: name the one that signed the members' certificates; the system's are not taken, since anybody may have one of theirs")
	case user.InsecureSkipVerify:
		return errors.New("TLS without verification: any host could vote")
	case user.GetConfigForClient != nil:
		return errors.New("TLS with GetConfigForClient, which could undo what makes connections mutual: use GetCertificate, VerifyPeerCertificate or VerifyConnection")
	case user.ClientAuth != tls.NoClientCert && user.ClientAuth != tls.RequireAndVerifyClientCert:
		return fmt.Errorf("TLS with ClientAuth %v: leave it out; certificates are always required and verified", user.ClientAuth)
	case user.ClientCAs != nil && !user.ClientCAs.Equal(user.RootCAs):
		return errors.New("TLS with ClientCAs that are not the RootCAs: leave them out; members call each other, so that the same authorities sign for both sides")
	case user.ServerName != "":
		return fmt.Errorf("TLS with ServerName %q: leave it out; each member is verified by the host of its own address", user.ServerName)
	case user.MaxVersion != 0 && user.MaxVersion < tls.VersionTLS13:
		return fmt.Errorf("TLS of at most %s: members speak TLS 1.3", tls.VersionName(user.MaxVersion))
	}
	return nil
}

// checkFirst verifies a certificate that is there from the start.
func (s *security) checkFirst(own *tls.Certificate) error {
	if len(own.Certificate) == 0 {
		return errors.New("the certificate is empty")
	}
	until, err := s.checkOwn(own)
	if err != nil {
		return err
	}
	leaf, err := x509.ParseCertificate(own.Certificate[0])
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	s.from, s.until = leaf.NotBefore, until
	return nil
}

// A secured connection has the settings that it was made with, and notes until when its own
// certificate is good.
type secured struct {
	*tls.Conn
	security *security
	ownEnds  time.Time
}

// server returns the side of a connection that was called.
func (s *security) server(conn net.Conn) *secured {
	c, config := &secured{security: s}, s.base.Clone()
	config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		return show(s, c, s.user.GetCertificate, hello)
	}
	c.Conn = tls.Server(conn, config)
	return c
}

// client returns the side of a connection that calls a host.
func (s *security) client(conn net.Conn, host string) *secured {
	c, config := &secured{security: s}, s.base.Clone()
	config.ServerName = host
	config.GetClientCertificate = func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return show(s, c, s.user.GetClientCertificate, info)
	}
	c.Conn = tls.Client(conn, config)
	return c
}

// An asker wants to see a certificate.
type asker interface {
	*tls.ClientHelloInfo | *tls.CertificateRequestInfo
	SupportsCertificate(c *tls.Certificate) error
}

// show returns the certificate to show on a connection: the user's function's, or, as in
// package tls, if there is none or it has none, the first of the user's that will do. It
// is verified first, so that a wrong one is found on this side too.
func show[A asker](s *security, c *secured, choose func(A) (*tls.Certificate, error), a A) (*tls.Certificate, error) {
	var own *tls.Certificate
	if choose != nil {
		var err error
		if own, err = choose(a); err != nil {
			return nil, fmt.Errorf("this side's certificate: %w", err)
		}
	}
	for i := range s.user.Certificates {
		if own == nil && a.SupportsCertificate(&s.user.Certificates[i]) == nil {
			own = &s.user.Certificates[i]
		}
	}
	if own == nil && len(s.user.Certificates) > 0 {
		own = &s.user.Certificates[0] // which the other side may refuse with a better reason
	}
	if own == nil || len(own.Certificate) == 0 {
		return nil, errors.New("this side has no certificate to show")
	}
	var err error
	c.ownEnds, err = s.checkOwn(own)
	return own, err
}

// checkOwn verifies one's own certificate as the other members will, so that a wrong one
// is found here and not by them. It returns until when it is good.
func (s *security) checkOwn(own *tls.Certificate) (ends time.Time, err error) {
	leaf, err := x509.ParseCertificate(own.Certificate[0])
	if err != nil {
		return time.Time{}, fmt.Errorf("certificate: %w", err)
	}
	between := x509.NewCertPool()
	for _, der := range own.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			between.AddCert(c)
		}
	}
	uses := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if s.member != "" {
		uses = append(uses, x509.ExtKeyUsageServerAuth)
		if err := leaf.VerifyHostname(hostOf(s.member)); err != nil {
			return time.Time{}, fmt.Errorf("certificate: %w; it needs the host of the member's address as a subject alternative name", err)
		}
	}
	for _, use := range uses {
		chains, err := leaf.Verify(x509.VerifyOptions{Roots: s.base.RootCAs, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{use}, CurrentTime: s.now()})
		if over := outOfTime(err); over != nil {
			return time.Time{}, fmt.Errorf("this side's %v", over) // and not the other's, as plain would say
		}
		if err != nil {
			return time.Time{}, fmt.Errorf("certificate: %w; it must be signed by the given authority, for use by servers and clients", err)
		}
		ends = chainsEnd(chains)
	}
	return ends, nil
}

// outOfTime returns which certificate is not good now, if that is what is wrong. The text of
// package x509 has the time of day in it, so that it would be logged again each second.
func outOfTime(err error) error {
	var invalid x509.CertificateInvalidError
	if !errors.As(err, &invalid) || invalid.Reason != x509.Expired {
		return nil
	}
	whose, c := "certificate", invalid.Cert
	if c.IsCA {
		whose = "authority"
	}
	return fmt.Errorf("%s has expired, or the clock is wrong: it is good from %s until %s", whose, c.NotBefore.UTC().Format(time.RFC3339), c.NotAfter.UTC().Format(time.RFC3339))
}

// now is the time by which certificates are judged.
func (s *security) now() time.Time {
	if s.user.Time != nil {
		return s.user.Time()
	}
	return time.Now()
}

// ends returns when the first of a connection's certificates ends, and whose that is.
func (c *secured) ends() (at time.Time, whose string) {
	at = chainsEnd(c.ConnectionState().VerifiedChains)
	if c.ownEnds.Before(at) {
		return c.ownEnds, "this side's certificate"
	}
	return at, "its certificate"
}

// chainsEnd returns until when a certificate is good that has been verified: as long as
// all of one of its chains are.
func chainsEnd(chains [][]*x509.Certificate) (last time.Time) {
	for _, chain := range chains {
		first := chain[0].NotAfter
		for _, c := range chain {
			if c.NotAfter.Before(first) {
				first = c.NotAfter
			}
		}
		if first.After(last) {
			last = first
		}
	}
	return last
}
