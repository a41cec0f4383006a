//go:build linux

package faults

import (
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/internal/testenv"
)

// redisLossRows are about records that a server has acknowledged, and forgets.
func redisLossRows() []row {
	restart := row{
		number: 11, letter: "g", fault: "server restarted, nothing was on disk", own: true, times: 6,
		only:    and(keepsRecords, on("its servers keep what they have acknowledged", kindRedis)),
		servers: withSettings("--appendonly", "no"),
		must:    []oracle.Rule{oracle.LeaderInTime},
		red:     []oracle.Rule{oracle.OneLeader}, without: "an append-only file, or a quarantine",
		play: restartForgetful,
	}
	careful, lasting := restart, restart
	careful.letter, careful.fault, careful.red = "h", "server restarted, nothing was on disk; with a quarantine", nil
	careful.with, careful.part = "a quarantine", quarantine(0)
	lasting.letter, lasting.fault, lasting.red = "i", "server restarted, with an append-only file", nil
	lasting.with, lasting.servers = "an append-only file", withSettings("--appendfsync", "always")

	failover := row{
		number: 46, letter: "a", fault: "failover that loses the record", own: true, times: 10,
		only: on("its servers agree before they acknowledge; for Redis Cluster see 47", kindSentinel),
		must: []oracle.Rule{oracle.LeaderInTime},
		red:  []oracle.Rule{oracle.OneLeader}, without: "a quarantine",
		part: withoutHeir, // a leader would hand over, and write
		play: loseRecord,
	}
	remedied := failover
	remedied.letter, remedied.fault, remedied.red = "b", "failover that loses the record; with a quarantine", nil
	remedied.with, remedied.part = "a quarantine", both(withoutHeir, quarantine(0))
	shards, sound := failover, remedied
	only := on("it has no shards", kindCluster)
	shards.number, shards.only = 47, only
	sound.number, sound.only = 47, only

	split := row{
		number: 46, letter: "c", fault: "old primary goes on with its leader; with a quarantine", own: true, times: 2,
		only:    on("its servers agree before they acknowledge", kindSentinel),
		servers: withSettings("--user", redisUser, "on", ">"+redisPassword, "~*", "&*", "+@all"),
		part:    quarantine(lag),
		must:    []oracle.Rule{oracle.LeaderInTime},
		red:     []oracle.Rule{oracle.OneLeader}, without: "min-replicas-to-write",
		play: splitBrain,
	}
	whole := split
	whole.letter, whole.fault, whole.red = "d", "old primary goes on with its leader; with a quarantine and min-replicas-to-write", nil
	whole.with = "min-replicas-to-write"
	whole.servers = withSettings("--user", redisUser, "on", ">"+redisPassword, "~*", "&*", "+@all",
		"--min-replicas-to-write", "1", "--min-replicas-max-lag", "2")
	return []row{restart, careful, lasting, failover, remedied, shards, sound, split, whole}
}

// lag is the min-replicas-max-lag of the rows with min-replicas-to-write.
const lag = 2 * time.Second

// quarantine returns for row.part that the adapters have one: a TTL, and more.
func quarantine(more time.Duration) func(*part) {
	return func(p *part) {
		p.Quarantine = p.TTL + more
		if more > 0 {
			p.User, p.Password = redisUser, redisPassword
		}
	}
}

// quarantine is how long the candidates' quarantine is.
func (s *stage) quarantine() time.Duration { return s.director().Quarantine }

// overlapped demands that there were two leaders, if the row is to show that
// there are, and that the fence told them apart.
func (s *stage) overlapped() {
	s.t.Helper()
	if len(s.row.red) > 0 {
		s.stale()
	}
}

// restartForgetful restarts the server while the leader is cut off and trusts
// its lease.
func restartForgetful(s *stage) {
	first := s.alive()
	s.awaitOf(first.Who, history.Extended)
	s.cut(first.Who)
	s.fault("the server is killed")
	s.nodes[0].Restart()
	s.healed("it serves again")
	s.due(first.Who, s.quarantine()+s.recovery(), "the server's restart")
	s.leader(first.Who)
	s.awaitOf(first.Who, history.Ended)
	s.overlapped()
	s.heal(first.Who)
	s.pass(s.ttl / 2)
}

// loseRecord has somebody elected whose record reaches no replica. Then the
// primary is lost, and a replica takes its place, while the leader is cut off and
// trusts its lease.
func loseRecord(s *stage) {
	first := s.alive()
	old := s.servers.leader(s.name)
	s.fault("nothing can be created")
	for _, who := range s.names {
		s.tell(who, "fault create fail")
	}
	s.tell(first.Who, "resign")
	s.await("the release", func(e history.Event) bool {
		return e.Who == first.Who && e.Kind == history.Answered && e.Op == "delete" && e.Result == history.OK
	})
	s.inStep()
	s.fault("the replicas hear nothing more")
	s.cutReplication()
	s.healed("records can be created")
	for _, who := range s.names {
		s.tell(who, "heal")
	}
	second := s.leader()
	s.cut(second.Who)
	s.fault("the primary is killed")
	old.Kill()
	promoted := s.servers.leader(s.name)
	require.NotEqual(s.t, old, promoted)
	s.healed("a replica has taken its place")
	s.due(second.Who, s.quarantine()+s.recovery(), "the promotion")
	s.leader(second.Who)
	s.awaitOf(second.Who, history.Ended)
	s.overlapped()
	s.heal(second.Who)
	s.pass(s.ttl / 4)
}

// inStep waits until the replicas have all.
func (s *stage) inStep() {
	s.t.Helper()
	if s.sentinel != nil {
		s.sentinel.AwaitInStep()
	} else {
		s.shards.AwaitReady()
	}
}

// cutReplication keeps all that is written from now on from the replicas.
func (s *stage) cutReplication() {
	s.t.Helper()
	if s.sentinel != nil {
		s.sentinel.CutReplication()
	} else {
		s.shards.CutReplication()
	}
}

// splitBrain parts the primary and the leader from all others: they go on, and
// so do the others, with the replica for a primary.
func splitBrain(s *stage) {
	first := s.alive()
	old := s.servers.leader(s.name)
	s.inStep()
	inside := redis.NewClient(&redis.Options{Addr: old.Addr(), Username: redisUser, Password: redisPassword})
	s.t.Cleanup(func() { inside.Close() })
	s.apart(first.Who, old, true)
	for _, who := range s.others(first.Who) {
		s.apart(who, old, false)
	}
	s.cutReplication()
	// Its peers are users without a name.
	require.NoError(s.t, inside.Do(s.t.Context(), "acl", "setuser", "default", "off").Err())
	require.NoError(s.t, inside.Do(s.t.Context(), "client", "kill", "user", "default").Err())
	promoted := s.servers.leader(s.name)
	require.NotEqual(s.t, old, promoted)
	s.healed("the replica is the primary on its side")
	s.pass(s.quarantine() + s.recovery())
	s.overlapped()
	if len(s.row.red) == 0 {
		_, led := s.leads()
		require.False(s.t, led, "without a replica there is no leader on either side")
	}

	s.healed("the sides see each other again")
	require.NoError(s.t, inside.Do(s.t.Context(), "acl", "setuser", "default", "on").Err())
	s.sentinel.HealReplication()
	s.sentinel.AwaitInStep()
	s.heal()
	s.due("", s.quarantine()+s.recovery(), "the old primary follows the new one")
	s.awaitOf(first.Who, history.Ended)
	s.leader()
	s.pass(s.ttl)
}

// apart cuts a candidate off from one server, or from all but that one.
func (s *stage) apart(who string, node *testenv.Server, allBut bool) {
	s.t.Helper()
	s.note(history.Event{Kind: history.Fault, Who: who, Text: "is cut off from the other side"})
	for i, link := range s.actor(who).links {
		if (s.all[i] == node.Addr()) != allBut {
			link.Cut()
		}
	}
}
