//go:build linux

package faults

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/internal/testenv"
)

// consulRows are about sessions, tokens and blocking queries as Consul has them.
func consulRows() []row {
	inTime := []oracle.Rule{oracle.LeaderInTime}
	return append([]row{
		{
			number: 34, letter: "k", fault: "session destroyed by an operator", only: and(onConsul, ownExpiry), must: inTime, times: 2, part: quietly,
			play: func(s *stage) {
				for range 3 {
					first := s.alive()
					s.interfered(s.notice(), "the session is destroyed")
					since := boottime.Now()
					_, err := s.consul().Session().Destroy(s.session(), nil)
					require.NoError(s.t, err)
					s.deposed(first, since)
					s.due("", s.release(), "its session was destroyed")
					s.leader()
				}
			},
		},
		{
			number: 34, letter: "l", fault: "dead leader's session renewed by others", only: and(onConsul, ownExpiry), must: inTime,
			play: func(s *stage) {
				first := s.alive()
				since := boottime.Now()
				session := s.session()
				s.kill(first.Who)
				s.fault("its session is kept alive")
				for boottime.Now() < since+2*s.life.Max {
					entry, _, err := s.consul().Session().Renew(session, nil)
					require.NoError(s.t, err)
					require.NotNil(s.t, entry)
					s.nobody(since, s.ttl/2)
				}
				s.due(first.Who, s.takeover(), "nobody renewed its session any more")
				s.leader(first.Who)
			},
		},
		{
			number: 40, letter: "k", fault: "Consul policy emptied within a term", own: true, must: inTime,
			only: on("policies are Consul's", "consul"), servers: guardedConsul, part: candidateToken,
			play: func(s *stage) {
				client := s.consulManager()
				policy, _, err := client.ACL().PolicyReadByName("elections", nil)
				require.NoError(s.t, err)
				allow := func(rules string) func() {
					return func() {
						policy.Rules = rules
						_, _, err := client.ACL().PolicyUpdate(policy, nil)
						require.NoError(s.t, err)
					}
				}
				s.barred("what the candidates' policy allows", allow(""), allow(consulRules))
			},
		},
		{
			number: 40, letter: "l", fault: "Consul token deleted within a term", own: true, must: inTime,
			only: on("tokens of this kind are Consul's", "consul"), servers: guardedConsul, part: candidateToken,
			play: func(s *stage) {
				client := s.consulManager()
				token, _, err := client.ACL().TokenList(nil)
				require.NoError(s.t, err)
				id := ""
				for _, entry := range token {
					if entry.Description == "candidates" {
						id = entry.AccessorID
					}
				}
				s.barred("the candidates' token", func() {
					_, err := client.ACL().TokenDelete(id, nil)
					require.NoError(s.t, err)
				}, func() { makeToken(s.t, client) })
			},
		},
		{
			number: 41, letter: "k", fault: "no connections left for a client's address", own: true, times: 3,
			only: on("the limit for each address is Consul's", "consul"),
			must: []oracle.Rule{oracle.LeaderKept, oracle.LeaderInTime},
			servers: func(t testing.TB, _ column) *servers {
				return alone(testenv.StartConsul(t, map[string]any{"limits": map[string]any{"http_max_conns_per_client": 30}}))
			},
			play: crowdConsul,
		},
		{
			number: 44, letter: "k", fault: "snapshot restored: the index goes back", own: true, must: inTime,
			only: on("snapshots are restored under clients' eyes in Consul only", "consul", "consul3"),
			play: restoreSnapshot,
		},
	}, bentRows()...)
}

func onConsul(c column) string {
	return on("sessions are Consul's", "consul", "consul3")(c)
}

// bentRows are about blocking queries that are not answered as they should be.
func bentRows() []row {
	rows := []row{
		{
			letter: "l", fault: "blocking queries answered with index 0",
			play: bend(func(w http.ResponseWriter, _ *http.Request) http.ResponseWriter { return noIndex{w} }),
		},
		{
			letter: "m", fault: "blocking queries answered early, without a change",
			play: bend(func(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
				query := r.URL.Query()
				query.Set("wait", "50ms")
				r.URL.RawQuery = query.Encode()
				return w
			}),
		},
		{
			letter: "n", fault: "blocking queries answered with 500",
			play: bend(func(w http.ResponseWriter, _ *http.Request) http.ResponseWriter {
				http.Error(w, "rpc error: No cluster leader", http.StatusInternalServerError)
				return nil
			}),
		},
	}
	for i := range rows {
		rows[i].number, rows[i].own, rows[i].times = 44, true, 3
		rows[i].only = on("blocking queries are Consul's", "consul")
		rows[i].must = []oracle.Rule{oracle.LeaderKept, oracle.LeaderInTime}
		rows[i].servers = func(t testing.TB, c column) *servers {
			servers := c.start(t)
			servers.middleman = newMiddleman(t, servers.addrs[0])
			servers.addrs = []string{servers.middleman.addr}
			servers.all = servers.addrs
			return servers
		}
	}
	return rows
}

// bend has every blocking query bent for some time, in which a leader stays, and
// another follows when it is killed.
func bend(how bender) func(*stage) {
	return func(s *stage) {
		first := s.alive()
		s.keep(first, 2*s.ttl)
		s.fault("blocking queries are bent")
		began, before := boottime.Now(), s.middleman.bends(how)
		// Those that wait are not bent any more.
		s.links("loses its connections", (*testenv.Proxy).Cut)
		s.heal()
		s.pass(2 * s.ttl)
		s.due(first.Who, s.takeover()+time.Second, "SIGKILL")
		s.kill(first.Who)
		s.leader(first.Who)
		took, queries := boottime.Now()-began, s.middleman.bends(nil)-before
		s.healed("blocking queries are answered again")
		require.Greater(s.t, queries, 5, "queries that were bent")
		// A watch sends four requests a second at most, and begins anew now and then.
		require.Less(s.t, queries, int(5*took.Seconds()+10)*len(s.names), "within %v", took)
		s.pass(s.ttl)
	}
}

// session returns the one that holds the safe.
func (s *stage) session() string {
	s.t.Helper()
	pair, _, err := s.consul().KV().Get(s.name, &api.QueryOptions{RequireConsistent: true})
	require.NoError(s.t, err)
	require.NotNil(s.t, pair)
	require.NotEmpty(s.t, pair.Session)
	return pair.Session
}

// consulRules are those that the adapter's documentation asks for.
const (
	consulRules = `key_prefix "" { policy = "write" }  session_prefix "" { policy = "write" }`
	consulToken = "0b2f6a0e-53a4-4d0c-8a34-4f6d7f3c9e11"
)

// guardedConsul starts a server on which the candidates have a token.
func guardedConsul(t testing.TB, _ column) *servers {
	t.Helper()
	servers := alone(testenv.StartConsulWithACL(t))
	client := consulManager(t, servers.addrs[0])
	_, _, err := client.ACL().PolicyCreate(&api.ACLPolicy{Name: "elections", Rules: consulRules}, nil)
	require.NoError(t, err)
	makeToken(t, client)
	return servers
}

func makeToken(t testing.TB, client *api.Client) {
	t.Helper()
	_, _, err := client.ACL().TokenCreate(&api.ACLToken{
		SecretID: consulToken, Description: "candidates", Policies: []*api.ACLLink{{Name: "elections"}},
	}, nil)
	require.NoError(t, err)
}

func candidateToken(p *part) { p.Token = consulToken }

func consulManager(t testing.TB, addr string) *api.Client {
	t.Helper()
	config := api.DefaultConfig()
	config.Address, config.Token = addr, testenv.ConsulManagementToken
	client, err := api.NewClient(config)
	require.NoError(t, err)
	return client
}

func (s *stage) consulManager() *api.Client {
	s.t.Helper()
	return consulManager(s.t, s.addrs[0])
}

// crowdConsul takes all connections that the server accepts from this machine.
// Those that the candidates have go on; a new candidate gets none.
func crowdConsul(s *stage) {
	first := s.alive()
	s.fault("no connection is left")
	s.keep(first, 2*s.ttl)
	conns := []net.Conn{}
	for refused := false; !refused; {
		conn, err := net.Dial("tcp", s.addrs[0])
		require.NoError(s.t, err)
		conns = append(conns, conn)
		require.Less(s.t, len(conns), 40)
		refused = answers(s.t, conn, "429")
	}
	s.enter("dora")
	s.awaitOf("dora", history.Ready)
	s.pass(2 * s.ttl)
	require.Empty(s.t, s.events().Of("dora", history.Seen), "dora reaches the server")
	for _, conn := range conns {
		require.NoError(s.t, conn.Close())
	}
	s.healed("connections are to be had")
	s.awaitOf("dora", history.Seen)
	s.due(first.Who, s.takeover(), "SIGKILL")
	s.kill(first.Who)
	s.leader(first.Who)
}

// answers reports whether the server sends at once, unasked, a text that
// contains some words.
func answers(t testing.TB, conn net.Conn, words string) bool {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	text := make([]byte, 1024)
	n, err := conn.Read(text)
	if n == 0 {
		require.ErrorContains(t, err, "timeout")
		return false
	}
	require.Contains(t, string(text[:n]), words)
	return true
}

// restoreSnapshot brings back the record of a leader that has gone: its session
// lives anew, and the one who leads finds that it does not. Then the safe opens.
func restoreSnapshot(s *stage) {
	first := s.alive()
	client := s.consul()
	snapshot, _, err := client.Snapshot().Save(nil)
	require.NoError(s.t, err)
	text, err := io.ReadAll(snapshot)
	require.NoError(s.t, err)
	require.NoError(s.t, snapshot.Close())
	for i := range 20 {
		_, err := client.KV().Put(&api.KVPair{Key: fmt.Sprint(s.name, "-", i)}, nil)
		require.NoError(s.t, err)
	}
	s.tell(first.Who, "close")
	s.awaitOf(first.Who, history.Left)
	second := s.alive()
	before := s.index()

	s.fault("the snapshot is restored")
	since := boottime.Now()
	require.NoError(s.t, client.Snapshot().Restore(nil, bytes.NewReader(text)))
	require.Less(s.t, s.index(), before, "the key's index has gone back")
	s.deposed(second, since)
	// A watch looks by itself within ten seconds, and Consul does not tell.
	s.due("", s.takeover()+10*time.Second, "a snapshot was restored")
	s.leader()
	s.pass(s.ttl)
}

// index returns the ModifyIndex of the key.
func (s *stage) index() uint64 {
	s.t.Helper()
	pair, _, err := s.consul().KV().Get(s.name, &api.QueryOptions{RequireConsistent: true})
	require.NoError(s.t, err)
	require.NotNil(s.t, pair)
	return pair.ModifyIndex
}
