package wire_test

import (
	"context"
	"net"
	"testing"

	"github.com/electkv/election/internal/testenv"
)

// Nobody listens at the members' addresses; only whoever dials knows where they are.
func TestMembersAreReachedByTheDialOfTheirOwn(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	places := map[string]string{}
	for _, m := range c.members {
		places[m] = testenv.FreeAddr(t)
	}
	all := []*node{}
	for _, m := range append(c.members, "") { // the last one is a client
		config := c.config(m)
		config.Listen = places[m]
		config.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, places[addr])
		}
		all = append(all, c.start(config))
	}
	for _, from := range all {
		for _, to := range all[:2] {
			from.delivers(to, "hello")
		}
	}
}
