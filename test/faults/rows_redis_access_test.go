//go:build linux

package faults

import (
	"bufio"
	"context"
	"net"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
)

const (
	redisUser     = "alice"
	redisPassword = "secret"
)

// redisAccessRows are about what a client may do, and about its connections.
func redisAccessRows() []row {
	asUser := row{
		number: 40, own: true, only: onRedis("its users are other ones"),
		servers: withSettings("--user", redisUser, "on", ">"+redisPassword, "~*", "&*", "+@all"),
		part:    func(p *part) { p.User, p.Password = redisUser, redisPassword },
		must:    []oracle.Rule{oracle.LeaderInTime},
	}
	rights, password := asUser, asUser
	rights.letter, rights.fault = "a", "user's rights withdrawn, and given back"
	rights.play = func(s *stage) {
		s.locked("NOPERM", func() { s.everywhere("acl", "setuser", redisUser, "-@all") },
			func() { s.everywhere("acl", "setuser", redisUser, "+@all") })
	}
	password.letter, password.fault = "b", "user's password changed, and changed back"
	password.play = func(s *stage) {
		s.locked("WRONGPASS", func() {
			s.everywhere("acl", "setuser", redisUser, "resetpass", ">another")
			s.everywhere("client", "kill", "user", redisUser)
		}, func() { s.everywhere("acl", "setuser", redisUser, "resetpass", ">"+redisPassword) })
	}
	hints := row{
		number: 45, own: true, times: 3, only: onRedis("its watches are requests"),
		// Without a hint a watch would learn of nothing in time. Without an heir all watch the leader.
		part: both(withoutHeir, func(p *part) { p.Backstop = time.Minute }),
		must: []oracle.Rule{oracle.LeaderInTime},
	}
	killed, slow := hints, hints
	killed.letter, killed.fault = "a", "subscribers thrown out"
	killed.play = func(s *stage) { s.deaf(func() { s.everywhere("client", "kill", "type", "pubsub") }) }
	slow.letter, slow.fault = "b", "subscribers thrown out for being slow"
	slow.servers = withSettings("--client-output-buffer-limit", "pubsub", "64kb", "0", "0")
	slow.play = func(s *stage) {
		s.deaf(func() {
			for range s.nodes { // a cluster's nodes pass it on, but not a primary's replica
				require.NoError(s.t, s.primary().Publish(s.t.Context(), s.hints(), strings.Repeat("x", 1<<20)).Err())
			}
		})
	}
	return []row{
		rights, password,
		{
			number: 41, fault: "no connections left", own: true, times: 3,
			only:    on("several servers share the connections", kindRedis),
			servers: withSettings("--maxclients", "40"),
			must:    []oracle.Rule{oracle.LeaderKept, oracle.LeaderInTime},
			play:    crowdOut,
		},
		killed, slow,
	}
}

// locked locks the candidates out, by an error that begins as given, until the
// leader has gone and for 2 TTL more.
func (s *stage) locked(text string, spoil, mend func()) {
	s.t.Helper()
	first := s.alive()
	s.fault("the user may do nothing")
	spoil()
	since := boottime.Now()
	s.hears(first.Who, text)
	s.awaitOf(first.Who, history.Ended)
	s.nobody(since, 2*s.ttl)
	s.due("", s.recovery(), "the user may do all again")
	mend()
	s.healed("the user may do all again")
	s.leader()
	s.pass(s.ttl)
}

// hints is the channel on which a leader tells that it has gone.
func (s *stage) hints() string { return "election:" + s.name }

// listeners waits until all candidates listen to that channel.
func (s *stage) listeners() {
	s.t.Helper()
	s.eventually("all listen", func(ctx context.Context) bool {
		n := int64(0)
		for _, node := range s.nodes {
			n += s.operator(node).PubSubNumSub(ctx, s.hints()).Val()[s.hints()]
		}
		return n >= int64(len(s.names))
	})
}

// deaf has the subscribers thrown out while they wait, and then again at the
// very moment of a handover.
func (s *stage) deaf(throwOut func()) {
	first := s.alive()
	s.listeners()
	before := s.subscriptions()
	s.fault("the subscribers are thrown out")
	throwOut()
	s.eventually("they have been thrown out, and are back", func(context.Context) bool {
		return s.subscriptions() >= before+len(s.names)
	})
	s.listeners()
	s.due(first.Who, s.release(), "its end")
	s.tell(first.Who, "resign")
	second := s.leader(first.Who)

	s.listeners()
	s.fault("the subscribers are thrown out, and nobody hears of the release")
	s.due(second.Who, time.Second, "its end")
	throwOut()
	s.tell(second.Who, "close")
	s.leader(second.Who)
}

// subscriptions counts how often somebody subscribed to anything.
func (s *stage) subscriptions() int {
	s.t.Helper()
	n := 0
	for _, node := range s.nodes {
		info, err := s.operator(node).Info(s.t.Context(), "commandstats").Result()
		require.NoError(s.t, err)
		n += callsOf(info, "subscribe")
	}
	return n
}

// callsOf reads how often a command was carried out.
func callsOf(info, command string) (n int) {
	_, rest, _ := strings.Cut(info, "cmdstat_"+command+":calls=")
	for _, digit := range rest {
		if digit < '0' || digit > '9' {
			break
		}
		n = 10*n + int(digit-'0')
	}
	return n
}

// crowdOut takes all connections that the server has to give, also those of the
// candidates that wait.
func crowdOut(s *stage) {
	first := s.alive()
	crowd := &crowd{stage: s, addr: s.nodes[0].Addr()}
	defer crowd.disperse()
	s.keep(first, 2*s.ttl)
	s.fault("all connections are taken")
	crowd.grow()
	waiting := s.others(first.Who)
	s.cut(waiting...)
	crowd.grow()
	s.heal(waiting...)
	for _, who := range waiting {
		s.hears(who, "cannot watch the safe")
	}
	s.pass(2 * s.ttl)
	require.False(s.t, crowd.join(), "there should be no connection left")
	crowd.disperse()
	s.healed("there are connections again")
	s.due(first.Who, s.recovery(), "SIGKILL")
	s.kill(first.Who)
	s.leader(first.Who)
}

// A crowd are connections that do nothing.
type crowd struct {
	*stage
	addr  string
	conns []net.Conn
}

// grow takes connections until there is none for a while.
func (c *crowd) grow() {
	for refused := 0; refused < 10; {
		if c.join() {
			refused = 0
			continue
		}
		refused++
		c.pass(20 * time.Millisecond)
	}
}

// join takes one connection, if there is one.
func (c *crowd) join() bool {
	conn, err := net.Dial("tcp", c.addr)
	require.NoError(c.t, err)
	_, err = conn.Write([]byte("PING\r\n"))
	require.NoError(c.t, err)
	answer, _ := bufio.NewReader(conn).ReadString('\n') // it may be reset
	if strings.HasPrefix(answer, "+PONG") {
		c.conns = append(c.conns, conn)
		return true
	}
	conn.Close()
	return false
}

// disperse gives all connections back.
func (c *crowd) disperse() {
	for _, conn := range c.conns {
		conn.Close()
	}
	c.conns = nil
}
