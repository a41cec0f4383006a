package wire_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// besiege has so many connect with a member from each of some addresses, say what they
// like, and connect again as soon as they are sent away, until the test ends. It returns
// when each has connected once.
func besiege(t *testing.T, member string, each int, say []byte, from ...string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var all, first sync.WaitGroup
	t.Cleanup(func() { stop(); all.Wait() })
	for _, addr := range from {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(addr)}}
		for range each {
			first.Add(1)
			all.Go(func() {
				once := sync.OnceFunc(first.Done)
				defer once()
				for ctx.Err() == nil {
					conn, err := dialer.DialContext(ctx, "tcp", member)
					if err == nil {
						once()
						leave := context.AfterFunc(ctx, func() { conn.Close() })
						_, _ = conn.Write(say)
						_, _ = conn.Read(make([]byte, 1)) // until it is sent away
						leave()
						conn.Close()
					}
					select {
					case <-ctx.Done():
					case <-time.After(100 * time.Millisecond):
					}
				}
			})
		}
	}
	first.Wait()
}

func loopback(first, last int) []string {
	var all []string
	for i := first; i <= last; i++ {
		all = append(all, fmt.Sprintf("127.0.0.%d", i))
	}
	return all
}

// halfHello begins a ClientHello that never ends.
var halfHello = []byte{0x16, 0x03, 0x01, 0x02, 0x00, 0x01}

// The members' certificates are for 127.0.0.1, from where they come.
func TestStrangersDoNotKeepAMemberOut(t *testing.T) {
	for name, test := range map[string]struct {
		each int
		say  []byte
		from []string
	}{
		"silent ones of another address":   {400, nil, loopback(2, 2)},
		"silent ones of many addresses":    {2, nil, loopback(2, 201)},
		"silent ones of the member's own":  {400, nil, loopback(1, 1)},
		"of many addresses, with a hello":  {2, halfHello, loopback(2, 201)},
		"of one address, one byte and out": {400, halfHello[:1], loopback(2, 2)},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 2)
			called := c.visitable(c.config(c.members[1]))
			besiege(t, called.id, test.each, test.say, test.from...)
			// A caller that is not let in gives up after three seconds, and they are
			// still there when it calls again.
			for range 3 {
				caller := c.start(c.config(c.members[0]))
				caller.delivers(called, "hello")
				require.NoError(t, caller.Close())
				called.loses(caller.id)
			}
		})
	}
}
