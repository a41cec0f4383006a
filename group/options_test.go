package group_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/group"
	"github.com/electkv/election/internal/testenv"
)

// addresses are so many.
func addresses(n int) []string {
	all := []string{}
	for i := range n {
		all = append(all, fmt.Sprintf("host-%d:7000", i))
	}
	return all
}

func TestOptionsThatAreWrongAreRefusedWithWhatWouldBeRight(t *testing.T) {
	authority := testenv.NewAuthority(t)
	for name, test := range map[string]struct {
		change func(*group.Options)
		want   string
	}{
		"no ID":                {func(o *group.Options) { o.ID = "" }, "no ID: give this process's own address, host:port, as Peers has it"},
		"an ID without a port": {func(o *group.Options) { o.ID = "here" }, `ID: member "here" is not host:port`},
		"an ID that no peer is": {
			func(o *group.Options) { o.ID = "127.0.0.1:7009" },
			`the ID "127.0.0.1:7009" is not among the peers "127.0.0.1:7000,127.0.0.1:7001": name the address of each process, this one's too`,
		},
		"no peers":            {func(o *group.Options) { o.Peers = nil }, "peers: no members: name the address of each, host:port"},
		"a peer twice":        {func(o *group.Options) { o.Peers = append(o.Peers, "127.0.0.1:07000") }, `member "127.0.0.1:7000" is named twice`},
		"a peer that is none": {func(o *group.Options) { o.Peers = append(o.Peers, "127.0.0.1:0") }, "with a port from 1 to 65535"},
		"too many peers":      {func(o *group.Options) { o.Peers = append(o.Peers, addresses(63)...) }, "peers: 65 processes: want at most 64"},
		"ten thousand peers":  {func(o *group.Options) { o.Peers = addresses(10_000) }, "peers: 10001 processes: want at most 64"},
		"one of them twice":   {func(o *group.Options) { o.Peers = append(addresses(10_000), "host-7:7000") }, `peers: member "host-7:7000" is named twice`},
		"no cluster":          {func(o *group.Options) { o.Cluster = "" }, "no Cluster: give all processes one name"},
		"a long cluster":      {func(o *group.Options) { o.Cluster = strings.Repeat("x", 256) }, "the cluster's name has 256 bytes, where 255 are the most"},
		"a cluster of bytes":  {func(o *group.Options) { o.Cluster = "\xff" }, "not UTF-8"},
		"a short interval":    {func(o *group.Options) { o.Interval = 1 }, "interval 1ns: want 10ms to 1m0s"},
		"an interval below 0": {func(o *group.Options) { o.Interval = -time.Second }, "interval -1s: want 10ms to 1m0s"},
		"a long interval":     {func(o *group.Options) { o.Interval = time.Hour }, "interval 1h0m0s: want 10ms to 1m0s"},
		"a drain below 0":     {func(o *group.Options) { o.Drain = -1 }, "Drain -1ns: want more than 0"},
		"a long drain":        {func(o *group.Options) { o.Drain = 25 * time.Hour }, "Drain 25h0m0s: want more than 0 and at most 24h"},
		"no TLS":              {func(o *group.Options) { o.TLS = nil }, "TLS"},
		"another's TLS":       {func(o *group.Options) { o.TLS = authority.Config("example.org") }, "it needs the host of the member's address"},
	} {
		t.Run(name, func(t *testing.T) {
			opts := group.Options{ID: "127.0.0.1:7000", Peers: []string{"127.0.0.1:7000", "127.0.0.1:7001"}, Cluster: "test", TLS: authority.Config("127.0.0.1")}
			test.change(&opts)
			_, err := group.New(&opts)
			require.ErrorContains(t, err, test.want)
			require.Regexp(t, "^group: ", err.Error())
			require.Less(t, len(err.Error()), 1<<10)
		})
	}
	_, err := group.New(nil)
	require.ErrorContains(t, err, "no ID")
}

func TestAProcessThatIsStartedTwiceOnAHostIsRefused(t *testing.T) {
	opts := group.Options{ID: testenv.FreeAddr(t), Cluster: "test", TLS: testenv.NewAuthority(t).Config("127.0.0.1")}
	opts.Peers = []string{opts.ID}
	m, err := group.New(&opts)
	require.NoError(t, err)
	_, err = group.New(&opts)
	require.ErrorContains(t, err, "is the member started twice")
	require.NoError(t, m.Close())
	m, err = group.New(&opts)
	require.NoError(t, err)
	require.NoError(t, m.Run(t.Context(), func(_ context.Context, g group.Group) error {
		require.Equal(t, group.Group{Number: g.Number, Leader: opts.ID, Members: opts.Peers}, g)
		return nil
	}))
	require.NoError(t, m.Close())
}
