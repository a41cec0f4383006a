package wire_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/wire"
)

// A member that is called asks for it when it starts: its caller, who has called in vain
// for long, does so at once.
func TestAMemberThatKnocksIsCalledAtOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	listener, err := net.Listen("tcp", c.members[1])
	require.NoError(t, err)
	calls, done := make(chan time.Time, 100), make(chan struct{})
	defer func() { listener.Close(); <-done }()
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			calls <- time.Now()
			conn.Close()
		}
	}()
	caller := c.start(c.config(c.members[0]))
	for range 6 { // until it calls seldom
		<-calls
	}
	const soon = 200 * time.Millisecond
	soonest := time.Hour
	for end := time.Now().Add(time.Minute); soonest >= soon && time.Now().Before(end); {
		called := <-calls // it calls again a quarter of a second later, or more
		v := c.visit(caller.id, c.authority.Config("127.0.0.1"))
		v.say(wire.Frame(wire.KindHello, c.protocol().Hello(c.members[1], 1)))
		require.Contains(t, v.refused(), "it is this side that calls")
		soonest = min(soonest, (<-calls).Sub(called))
	}
	require.Less(t, soonest, soon)
	require.NotContains(t, caller.logged(), "it is this side that calls")
}

func TestAMemberKnocksWhenItStarts(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	calls, err := net.Listen("tcp", c.members[0])
	require.NoError(t, err)
	defer calls.Close()
	c.start(c.config(c.members[1]))
	require.NoError(t, calls.(*net.TCPListener).SetDeadline(time.Now().Add(patience)))
	conn, err := calls.Accept()
	require.NoError(t, err)
	conn.Close()
}
