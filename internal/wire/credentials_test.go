package wire_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/internal/wire"
)

// settings are a node's, which a test changes while it runs.
type settings struct{ atomic.Value }

// answer is what a node gets that asks for its settings.
type answer struct {
	config *tls.Config
	err    error
}

func (s *settings) set(config *tls.Config, err error) { s.Store(answer{config, err}) }

func (s *settings) get() (*tls.Config, error) {
	a := s.Load().(answer)
	return a.config, a.err
}

// changing is a node's config with settings that can change.
func (c cluster) changing(config wire.Config) (wire.Config, *settings) {
	s := &settings{}
	s.set(config.TLS, nil)
	config.TLS, config.GetTLS = nil, s.get
	return config, s
}

// signed returns settings with a certificate of one authority, and some that are trusted.
func signed(cal *calendar, days int, by *testenv.Authority, trusted ...*testenv.Authority) *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS13, Time: cal.now, RootCAs: testenv.Pool(trusted...)}
	config.Certificates = []tls.Certificate{by.Until(time.Now().Add(time.Duration(days)*24*time.Hour), "127.0.0.1")}
	return config
}

// The connections end with the certificates that they began with. Until then the members
// have taken three steps, at each of which they trust each other.
func TestMembersMoveToAnotherAuthorityWhileTheyRun(t *testing.T) {
	t.Parallel()
	c, next := newCluster(t, 2), testenv.NewAuthority(t)
	var cal calendar
	var nodes [2]*node
	var all [2]*settings
	for i, m := range c.members {
		config := c.config(m)
		config.TLS = signed(&cal, 1, c.authority, c.authority)
		config, all[i] = c.changing(config)
		nodes[i] = c.start(config)
	}
	nodes[0].delivers(nodes[1], "before")
	days := 0
	take := func(trust string, by *testenv.Authority, trusted ...*testenv.Authority) {
		days++
		for _, s := range all { // each on its own: the other one has not been told yet
			s.set(signed(&cal, days+1, by, trusted...), nil)
		}
		cal.ahead.Store(int64(time.Duration(days) * 24 * time.Hour)) // which ends the connections
		shown := func(n *node) bool {
			for _, p := range n.Peers() {
				of := all[slices.Index(c.members, p.Member)]
				if !p.Connected || !bytes.Equal(p.Certificate.Raw, of.leaf(t)) {
					return false
				}
			}
			return true
		}
		require.Eventually(t, func() bool { return shown(nodes[0]) && shown(nodes[1]) }, patience, 10*time.Millisecond, trust)
		nodes[0].delivers(nodes[1], trust)
		nodes[1].delivers(nodes[0], trust)
	}
	take("both are trusted", c.authority, c.authority, next)
	take("the new one signs", next, c.authority, next)
	take("the old one is gone", next, next)
	for _, n := range nodes {
		require.Equal(t, 3, strings.Count(n.logged(), "certificate changed"), n.logged())
	}

	config := c.config("")
	config.TLS = signed(&cal, 99, c.authority, c.authority, next)
	c.start(config)
	nodes[0].complains("unknown authority")
}

func (s *settings) leaf(t *testing.T) []byte {
	t.Helper()
	config, err := s.get()
	require.NoError(t, err)
	return config.Certificates[0].Certificate[0]
}

// What is wrong with new settings is logged once, however many connections there are, and
// again if it is something else.
func TestSettingsThatAreWrongLeaveThoseBeforeInUse(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	var cal calendar
	config := c.config(c.members[0])
	config.TLS = signed(&cal, 9, c.authority, c.authority)
	good := config.TLS
	config, s := c.changing(config)
	member := c.start(config)
	visits := func(message string) {
		for range 3 {
			c.start(c.config("")).delivers(member, message)
		}
	}
	visits("before")
	lax := signed(&cal, 9, c.authority, c.authority)
	lax.InsecureSkipVerify = true
	other := testenv.NewAuthority(t)
	said := 0
	for _, wrong := range []struct {
		config *tls.Config
		err    error
		want   string
	}{
		{nil, errors.New("half of it is not there yet"), "half of it is not there yet"},
		{nil, nil, "no TLS"},
		{lax, nil, "any host could vote"},
		{signed(&cal, -1, c.authority, c.authority), nil, "has expired"},
		{signed(&cal, 9, other, c.authority), nil, "it must be signed by the given authority"},
		{c.authority.Config("127.0.0.2"), nil, "subject alternative name"},
		{&tls.Config{RootCAs: c.authority.Pool(), Certificates: make([]tls.Certificate, 1)}, nil, "is empty"},
	} {
		s.set(wrong.config, wrong.err)
		visits(wrong.want)
		said++
		require.Contains(t, member.logged(), wrong.want)
		require.Equal(t, said, strings.Count(member.logged(), "changed certificate not used"), "%s: %s", wrong.want, member.logged())
	}
	last, err := s.get()
	require.NoError(t, err)
	s.set(good, nil)
	visits("back")
	require.NotContains(t, member.logged(), "certificate changed", "it is the one that was in use")
	for _, right := range []*tls.Config{good, signed(&cal, 9, c.authority, c.authority)} {
		s.set(right, nil)
		c.start(c.config("")).delivers(member, "right") // once: the next connection finds the same
		s.set(last, nil)
		visits("wrong")
		said++
		require.Equal(t, said, strings.Count(member.logged(), "changed certificate not used"), "it was right meanwhile")
	}
	require.Equal(t, 1, strings.Count(member.logged(), "certificate changed"))
}

func TestSettingsAreThereFromTheStartAndOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	config, s := c.changing(c.config(c.members[0]))
	s.set(nil, errors.New("no such file"))
	_, err := wire.New(config)
	require.EqualError(t, err, "no such file")
	config.TLS = c.config("").TLS
	_, err = wire.New(config)
	require.EqualError(t, err, "both TLS and GetTLS: set one of them")
}
