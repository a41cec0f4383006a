package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

func TestProcessesFindEachOtherByTheRosterAndGoOnWithoutTheStore(t *testing.T) {
	for name, test := range map[string]struct {
		start func(t testing.TB, args ...string) *testenv.Server
		open  func(t *testing.T, addr string) kv.Store
		loses bool // all that it has
	}{
		"etcd":                          {testenv.StartEtcd, openEtcd, false},
		"Redis":                         {testenv.StartRedis, openRedis, false},
		"a Redis that loses everything": {testenv.StartRedis, openRedis, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := test.start(t)
			p := &party{T: t, tls: testenv.NewAuthority(t).Config("127.0.0.1")}
			ids := []string{testenv.FreeAddr(t), testenv.FreeAddr(t), testenv.FreeAddr(t), testenv.FreeAddr(t)}
			three, fourth := ids[:3], ids[3]
			for _, id := range three {
				p.starts(test.open(t, server.Addr()), id)
			}
			whole := p.merge(three...)

			server.Kill()
			before := p.groups(three...)
			p.starts(test.open(t, server.Addr()), fourth)
			p.merge(fourth)              // it works alone: it knows nobody, and nobody knows it
			time.Sleep(30 * time.Second) // a group would have missed a member by now
			require.Equal(t, before, p.groups(three...), "they are the group that they were")
			require.Equal(t, whole, before[len(before)-1])

			if test.loses {
				server.Wipe()
			}
			server.Restart()
			p.merge(ids...)
			for _, g := range p.groups(three...)[len(before):] {
				require.Contains(t, g, fourth, "no group changed but to take it in: %q", p.groups(ids...))
			}
		})
	}
}
