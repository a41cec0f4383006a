package wire_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/internal/wire"
)

// Each of the user's settings is somebody's: ours, the user's, or refused.
func TestNoSettingOfTLSIsDroppedInSilence(t *testing.T) {
	ours := "InsecureSkipVerify MinVersion ClientAuth ClientCAs SessionTicketsDisabled Certificates NameToCertificate " +
		"GetCertificate GetClientCertificate" // asked for each connection
	refused := "GetConfigForClient ServerName MaxVersion"
	for f := range reflect.TypeFor[tls.Config]().Fields() {
		if !f.IsExported() || strings.Contains(" "+ours+" "+refused+" ", " "+f.Name+" ") {
			continue
		}
		c := newCluster(t, 1)
		config := c.config(c.members[0])
		config.TLS.Time = time.Now // which is asked at once
		field := reflect.ValueOf(config.TLS).Elem().FieldByName(f.Name)
		if field.IsZero() {
			field.Set(sample(field))
		}
		base, err := wire.Secured(config)
		require.NoError(t, err, f.Name)
		require.False(t, reflect.ValueOf(base).Elem().FieldByName(f.Name).IsZero(), f.Name)
	}
}

// sample returns something of a type that is not zero.
func sample(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Func:
		return reflect.MakeFunc(v.Type(), nil)
	case reflect.Slice:
		return reflect.MakeSlice(v.Type(), 1, 1)
	case reflect.Array:
		a := reflect.New(v.Type()).Elem()
		a.Index(0).SetUint(1)
		return a
	case reflect.Bool:
		return reflect.ValueOf(true)
	case reflect.Interface:
		for _, x := range []any{strings.NewReader(""), &strings.Builder{}, tls.NewLRUClientSessionCache(1)} {
			if reflect.TypeOf(x).Implements(v.Type()) {
				return reflect.ValueOf(x)
			}
		}
	}
	return reflect.ValueOf(1).Convert(v.Type())
}

func TestTLSThatCannotHoldIsRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	for want, change := range map[string]func(*tls.Config){
		"GetConfigForClient, which could undo": func(x *tls.Config) {
			x.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, errors.New("not asked") }
		},
		"ClientAuth RequestClientCert: leave it out":    func(x *tls.Config) { x.ClientAuth = tls.RequestClientCert },
		"ClientCAs that are not the RootCAs":            func(x *tls.Config) { x.ClientCAs = testenv.NewAuthority(t).Pool() },
		`ServerName "a.example": leave it out`:          func(x *tls.Config) { x.ServerName = "a.example" },
		"at most TLS 1.2: members speak TLS 1.3":        func(x *tls.Config) { x.MaxVersion = tls.VersionTLS12 },
		"no GetClientCertificate beside GetCertificate": func(x *tls.Config) { x.GetCertificate, x.Certificates = noCertificate[*tls.ClientHelloInfo], nil },
		"no GetCertificate beside GetClientCertificate:": func(x *tls.Config) {
			x.GetClientCertificate, x.Certificates = noCertificate[*tls.CertificateRequestInfo], nil
		},
	} {
		config := c.config(c.members[0])
		change(config.TLS)
		_, err := wire.New(config)
		require.ErrorContains(t, err, want)
	}
	config := c.config(c.members[0])
	config.TLS.ClientCAs, config.TLS.ClientAuth, config.TLS.MaxVersion = c.authority.Pool(), tls.RequireAndVerifyClientCert, tls.VersionTLS13
	_, err := wire.New(config)
	require.NoError(t, err)
}

func noCertificate[A any](A) (*tls.Certificate, error) { return nil, errors.New("none") }

// Both ends of a connection ask the user's functions about the other end.
func TestTheUsersVerificationIsAsked(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(x *tls.Config, asked *atomic.Int64){
		"VerifyConnection": func(x *tls.Config, asked *atomic.Int64) {
			x.VerifyConnection = func(s tls.ConnectionState) error { return judge(s.PeerCertificates[0], asked) }
		},
		"VerifyPeerCertificate": func(x *tls.Config, asked *atomic.Int64) {
			x.VerifyPeerCertificate = func(_ [][]byte, chains [][]*x509.Certificate) error { return judge(chains[0][0], asked) }
		},
	} {
		for side, who := range []string{"the caller", "the called"} {
			t.Run(name+" of "+who, func(t *testing.T) {
				t.Parallel()
				c := newCluster(t, 2)
				var asked atomic.Int64
				judging, judged := c.config(c.members[side]), c.config(c.members[1-side])
				set(judging.TLS, &asked)
				judged.TLS = c.authority.Config("127.0.0.1", "revoked.example")
				node := c.start(judging)
				c.start(judged)
				node.complains("revoked.example may not vote")
				require.Positive(t, asked.Load())
				ok, _ := node.connected(c.members[1-side])
				require.False(t, ok)
			})
		}
	}
}

func judge(leaf *x509.Certificate, asked *atomic.Int64) error {
	asked.Add(1)
	if leaf.VerifyHostname("revoked.example") == nil {
		return errors.New("revoked.example may not vote")
	}
	return nil
}

// A calendar is the time by which certificates are judged, which tests set.
type calendar struct{ ahead atomic.Int64 }

func (c *calendar) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// certificates are a member's, which it is asked for by each connection.
type certificates struct {
	atomic.Pointer[tls.Certificate]
}

func (c *certificates) use(x *tls.Config) {
	x.Certificates = nil
	x.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.Load(), nil }
	x.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.Load(), nil }
}

func (c *certificates) set(cert tls.Certificate) { c.Store(&cert) }

// One of two members has a certificate that ends; the other's is good for longer. The
// calendar is that of only one of them, which ends the connection.
func TestAConnectionEndsWithACertificateAndANewOneIsUsed(t *testing.T) {
	t.Parallel()
	for side, name := range []string{"the caller's", "the called one's"} {
		for judge, by := range []string{"the caller", "the called one"} {
			t.Run(name+" ends, by the clock of "+by, func(t *testing.T) {
				t.Parallel()
				c := newCluster(t, 2)
				var cal calendar
				var certs certificates
				certs.set(c.authority.Until(time.Now().Add(24*time.Hour), "127.0.0.1"))
				var configs [2]wire.Config
				for i, m := range c.members {
					configs[i] = c.config(m)
					configs[i].TLS.Certificates = []tls.Certificate{c.authority.Until(time.Now().Add(96*time.Hour), "127.0.0.1")}
				}
				certs.use(configs[side].TLS)
				configs[judge].TLS.Time = cal.now
				caller, called := c.start(configs[0]), c.start(configs[1])
				caller.delivers(called, "before")

				cal.ahead.Store(int64(48 * time.Hour))
				nodes := [2]*node{caller, called}
				nodes[judge].loses(c.members[1-judge])
				nodes[judge].complains("certificate has expired")

				certs.set(c.authority.Until(time.Now().Add(96*time.Hour), "127.0.0.1"))
				caller.delivers(called, "after")
				called.delivers(caller, "after")
			})
		}
	}
}

// The real clock ends a connection too, whether anything is said on it or not. Both
// sides watch it; the one that is first says why, and the other one may see no more than
// the end.
func TestAConnectionEndsWhenACertificateDoes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	config := c.config(c.members[0])
	end := time.Now().Add(5 * time.Second).Truncate(time.Second)
	config.TLS.Certificates = []tls.Certificate{c.authority.Until(end, "127.0.0.1")}
	called := c.start(c.config(c.members[1]))
	caller := c.start(config)
	require.Eventually(t, func() bool { ok, _ := called.connected(c.members[0]); return ok || time.Now().After(end) }, patience, time.Millisecond)
	called.loses(c.members[0])
	expired := func(n *node) bool { return strings.Contains(n.logged(), "expired") }
	require.Eventually(t, func() bool { return expired(caller) || expired(called) }, patience, 10*time.Millisecond)
}

// A certificate of one's own that is wrong is found where it is, at the connection for
// which it was asked.
func TestAWrongCertificateThatIsAskedForIsFoundHere(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	config := c.config(c.members[0])
	var certs certificates
	certs.set(c.authority.Certificate("127.0.0.2"))
	certs.use(config.TLS)
	c.start(config).complains("it needs the host of the member's address as a subject alternative name")
}

// What a client has, besides or instead of a list.
func TestAClientIsAskedForItsCertificate(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	member := c.startAll()[0]
	config := c.config("")
	var certs certificates
	certs.set(c.authority.Certificate("whoever"))
	certs.use(config.TLS)
	config.TLS.GetCertificate = nil // nobody calls it
	c.start(config).delivers(member, "hello")
}

// Both sides log once whose certificate has expired. The time of day is not in that text: with it,
// the text would be new each second.
func TestAnExpiredCertificateIsSaidOnceByBoth(t *testing.T) {
	t.Parallel()
	for side, who := range []string{"caller", "called"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 2)
			var certs certificates
			certs.set(c.authority.Until(time.Now().Add(-time.Second), "127.0.0.1"))
			configs := [2]wire.Config{c.config(c.members[0]), c.config(c.members[1])}
			certs.use(configs[side].TLS) // at the start it would be refused
			nodes := [2]*node{c.start(configs[0]), c.start(configs[1])}
			nodes[side].complains("this side's certificate has expired, or the clock is wrong: it is good from 2")
			time.Sleep(3 * time.Second)
			own := nodes[side].logged()
			require.LessOrEqual(t, strings.Count(own, "this side's certificate has expired"), 2, own) // to itself, and from itself
			require.NotContains(t, own, "its certificate has expired")
			if side == 1 {
				nodes[0].complains("it has no certificate to show that is good, as its log says")
			}
		})
	}
}

func TestTheExpiredCertificateOfAnotherIsSaidToBeIts(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	c.startAll()
	config := c.config("")
	config.TLS.Certificates = []tls.Certificate{c.authority.Until(time.Now().Add(96*time.Hour), "client")}
	config.TLS.Time = func() time.Time { return time.Now().Add(48 * time.Hour) }
	client := c.start(config)
	client.complains("its certificate has expired, or the clock is wrong")
	time.Sleep(3 * time.Second)
	require.Equal(t, 1, strings.Count(client.logged(), "has expired"), client.logged())
}
