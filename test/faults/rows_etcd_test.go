//go:build linux

package faults

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/internal/testenv"
)

// etcdRows are about leases, revisions, users and alarms as etcd has them.
func etcdRows() []row {
	inTime := []oracle.Rule{oracle.LeaderInTime}
	return []row{
		{
			number: 13, letter: "e", fault: "etcd's leadership transferred", own: true, times: 3,
			only: on("it is etcd's operators who move its leader by hand", "etcd3"),
			must: []oracle.Rule{oracle.LeaderKept, oracle.LeaderInTime},
			play: transfer,
		},
		{
			number: 13, letter: "f", fault: "etcd's leader cut off, stopped for 3 TTL, and woken, three times", own: true,
			only: on("others' leaders end nothing when they are woken; see 13b", "etcd3"),
			must: []oracle.Rule{oracle.LeaderInTime},
			may:  []oracle.Rule{oracle.OneLeader}, because: "a leader of etcd that was stopped, and is woken, may revoke a lease that its successor has renewed",
			play: wakeLeader,
		},
		{
			number: 33, letter: "e", fault: "record overwritten, its lease kept", only: and(onEtcd, ownExpiry),
			must: []oracle.Rule{oracle.ForeignUnharmed, oracle.LeaderInTime},
			play: overwriteWith(func(s *stage, lease clientv3.LeaseID) clientv3.LeaseID { return lease }),
		},
		{
			number: 33, letter: "f", fault: "record overwritten, with a lease of its own", only: onEtcd,
			must: []oracle.Rule{oracle.ForeignUnharmed, oracle.LeaderInTime},
			play: overwriteWith(func(s *stage, _ clientv3.LeaseID) clientv3.LeaseID {
				grant, err := s.etcd().Grant(s.t.Context(), int64(s.ttl/time.Second))
				require.NoError(s.t, err)
				return grant.ID
			}),
		},
		{
			// Quietly: a value that was proclaimed has the token with it, and what is put
			// back is the leader's own record then.
			number: 34, letter: "e", fault: "record put back without its lease", only: and(onEtcd, ownExpiry), part: quietly,
			must: []oracle.Rule{oracle.ForeignUnharmed, oracle.LeaderInTime},
			play: func(s *stage) {
				s.alive()
				s.taken(s.content())
				s.gone()
			},
		},
		{
			number: 34, letter: "f", fault: "lease revoked by an operator", only: and(onEtcd, ownExpiry), must: inTime, part: quietly,
			play: func(s *stage) {
				for range 3 {
					first := s.alive()
					s.interfered(s.notice(), "the lease is revoked")
					since := boottime.Now()
					_, err := s.etcd().Revoke(s.t.Context(), s.lease())
					require.NoError(s.t, err)
					s.deposed(first, since)
					s.due("", s.release(), "its lease was revoked")
					s.leader()
				}
			},
		},
		{
			number: 38, letter: "e", fault: "etcd's quota is used up", only: onEtcd, own: true,
			must:    []oracle.Rule{oracle.LeaderKept, oracle.LeaderInTime},
			servers: func(t testing.TB, c column) *servers { return c.start(t, "--quota-backend-bytes=16777216") },
			play:    useUp,
			// Each refresh is a write, for which there is no room.
			observed: func(r *row) {
				r.must = inTime
				r.play = func(s *stage) { s.fullEtcd(func(first history.Stretch) { s.awaitOf(first.Who, history.Ended) }) }
			},
		},
		{
			number: 40, letter: "e", fault: "etcd role revoked within a term", own: true, must: inTime,
			only:    on("its users' rights are another row's", "etcd"),
			servers: func(t testing.TB, _ column) *servers { return alone(testenv.StartEtcdWithAuth(t)) },
			part:    func(p *part) { p.User, p.Password = testenv.EtcdUser, testenv.EtcdUserPassword },
			play: func(s *stage) {
				root := s.director()
				root.User, root.Password = testenv.EtcdRoot, testenv.EtcdRootPassword
				client, err := root.etcd()
				require.NoError(s.t, err)
				defer client.Close()
				s.barred("the candidates' role", func() {
					_, err := client.UserRevokeRole(s.t.Context(), testenv.EtcdUser, testenv.EtcdRole)
					require.NoError(s.t, err)
				}, func() {
					_, err := client.UserGrantRole(s.t.Context(), testenv.EtcdUser, testenv.EtcdRole)
					require.NoError(s.t, err)
				})
			},
		},
		{
			number: 42, fault: "history compacted under a watch", only: onEtcd, own: true, must: inTime,
			play: compact,
		},
	}
}

func onEtcd(c column) string {
	return on("leases, revisions, users and alarms of this kind are etcd's", "etcd", "etcd3")(c)
}

// wakeLeader stops etcd's leader for so long that all leases are over by its clock,
// and wakes it. Whoever leads the election is spared the loss of its connection,
// and goes on with the next leader of etcd.
func wakeLeader(s *stage) {
	for range 3 {
		s.alive()
		node := s.servers.leader(s.name)
		for _, who := range s.names {
			s.onlyReach(who, func(server int) bool { return s.nodes[server] != node })
		}
		s.fault("etcd's leader is stopped")
		s.due("", s.recovery(), "etcd's leader was stopped")
		node.Pause()
		s.pass(3 * s.ttl)
		s.leader()
		node.Continue()
		s.healed("it goes on, and learns of the next one")
		s.pass(s.ttl)
		s.heal()
		s.leader()
	}
}

// lease returns the one that the record has.
func (s *stage) lease() clientv3.LeaseID {
	s.t.Helper()
	resp, err := s.etcd().Get(s.t.Context(), s.name)
	require.NoError(s.t, err)
	require.Len(s.t, resp.Kvs, 1)
	return clientv3.LeaseID(resp.Kvs[0].Lease)
}

// overwriteWith puts somebody else's value at the key, with a lease that nobody
// keeps alive: somebody is to lead when it has ended.
func overwriteWith(lease func(*stage, clientv3.LeaseID) clientv3.LeaseID) func(*stage) {
	return func(s *stage) {
		first := s.alive()
		id := lease(s, s.lease())
		s.note(history.Event{Kind: history.Placed, Value: "somebody else's"})
		since := boottime.Now()
		_, err := s.etcd().Put(s.t.Context(), s.name, "somebody else's", clientv3.WithLease(id))
		require.NoError(s.t, err)
		s.deposed(first, since)
		s.due("", s.takeover(), "the foreign record's lease was left to end")
		s.nobody(since+s.slack(s.ttl/3), s.ttl/3)
		s.unharmed()
		s.leader()
	}
}

// transfer moves etcd's leadership from node to node.
func transfer(s *stage) {
	first := s.alive()
	s.keep(first, s.ttl)
	for range 3 {
		old := s.cluster.Leader()
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{old.Addr()}})
		require.NoError(s.t, err)
		defer client.Close()
		next, err := clientv3.New(clientv3.Config{Endpoints: []string{s.servers.others(old)[0].Addr()}})
		require.NoError(s.t, err)
		defer next.Close()
		status, err := next.Status(s.t.Context(), next.Endpoints()[0])
		require.NoError(s.t, err)
		s.fault("the server's leadership is transferred")
		_, err = client.MoveLeader(s.t.Context(), status.Header.MemberId)
		require.NoError(s.t, err)
		require.NotEqual(s.t, old.Addr(), s.cluster.Leader().Addr())
		s.pass(s.ttl / 3)
	}
	s.pass(s.ttl / 3)
	now := s.leader()
	// A new leader of etcd's starts all leases anew.
	s.due(now.Who, s.takeover(), "SIGKILL")
	s.kill(now.Who)
	s.leader(now.Who)
}

// useUp uses up the quota while a leader goes on: a lease can be kept alive
// meanwhile, and nobody can get one.
func useUp(s *stage) {
	s.fullEtcd(func(first history.Stretch) { s.keep(first, 3*s.ttl) })
}

// fullEtcd fills the server's quota, sees to the leader, and makes room again.
func (s *stage) fullEtcd(see func(first history.Stretch)) {
	s.t.Helper()
	first := s.alive()
	client, ctx := s.etcd(), s.t.Context()
	s.fault("the quota is used up")
	for {
		_, err := client.Put(ctx, "filling", strings.Repeat("x", 1<<20))
		if errors.Is(err, rpctypes.ErrNoSpace) {
			break
		}
		require.NoError(s.t, err)
	}
	see(first)
	s.pass(3 * s.ttl)
	since := boottime.Now()
	s.kill(first.Who)
	s.nobody(since, s.life.Max+s.ttl)

	alarms, err := client.AlarmList(ctx)
	require.NoError(s.t, err)
	require.NotEmpty(s.t, alarms.Alarms, "there was no room all the time")
	_, err = client.Compact(ctx, alarms.Header.Revision, clientv3.WithCompactPhysical())
	require.NoError(s.t, err)
	for _, addr := range s.addrs {
		_, err := client.Defragment(ctx, addr)
		require.NoError(s.t, err)
	}
	s.due("", s.recovery(), "the quota had room again")
	_, err = client.AlarmDisarm(ctx, &clientv3.AlarmMember{})
	require.NoError(s.t, err)
	s.healed("there is room again")
	s.leader()
	s.pass(s.ttl)
}

// compact lets the leader go while nobody sees it, and has the revisions from
// then on forgotten before anybody can ask for them. A watch of the stage's own
// shows that they are.
func compact(s *stage) {
	for range 2 {
		first := s.alive()
		waiting := s.others(first.Who)
		link := testenv.NewProxy(s.t, s.addrs[0])
		canary, err := clientv3.New(clientv3.Config{Endpoints: []string{link.Addr()}})
		require.NoError(s.t, err)
		defer canary.Close()
		watch := canary.Watch(s.t.Context(), s.name, clientv3.WithCreatedNotify())
		require.True(s.t, (<-watch).Created)

		link.Cut()
		s.cut(waiting...)
		s.tell(first.Who, "close")
		s.awaitOf(first.Who, history.Left)
		client := s.etcd()
		resp, err := client.Put(s.t.Context(), s.name+"-else", "")
		require.NoError(s.t, err)
		s.fault("the history is compacted")
		_, err = client.Compact(s.t.Context(), resp.Header.Revision)
		require.NoError(s.t, err)
		s.due(first.Who, s.recovery(), "the connections came back")
		s.heal(waiting...)
		link.Heal()
		require.Positive(s.t, (<-watch).CompactRevision, "the watch asked for what is forgotten")
		s.leader(first.Who)
		s.again(first.Who)
	}
}
