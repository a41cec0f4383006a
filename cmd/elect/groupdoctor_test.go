//go:build linux

package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/group"
)

// The members of a group keep no elections, and elect doctor says so.
func TestDoctorRecognizesAGroup(t *testing.T) {
	t.Parallel()
	c, _ := newCluster(t, 5*time.Second, time.Hour)
	var all []*group.Member
	for _, addr := range c.addrs {
		folder := c.folder(c.dir, addr)
		files := &group.Files{Cert: filepath.Join(folder, "elect.pem"), CA: filepath.Join(folder, "ca.pem")}
		m, err := group.New(&group.Options{ID: addr, Peers: c.addrs, Cluster: "test", GetTLS: files.TLS})
		require.NoError(t, err)
		t.Cleanup(func() { _ = m.Close() })
		all = append(all, m)
	}
	says := func(what string) (out string) {
		eventually(t, what, func() bool {
			var status int
			status, out = c.ask("doctor")
			return status == 1 && strings.Contains(out, what)
		})
		return out
	}
	out := says("OK    groups: 3 of 3 members are reached, and form groups (package group)")
	require.Contains(t, out, "these form groups, which keep no elections")
	require.NotContains(t, out, "quorum")

	require.NoError(t, all[0].Close())
	says("WARN  groups: 2 of 3 members are reached")
}
