//go:build unix

package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
)

func TestStatusListsTheCandidatesThatKeepARoster(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, p *place) {
		kind, _, _ := strings.Cut(p.store, ":")
		if kind != "etcd" && kind != "consul" && kind != "redis" {
			status, _, stderr := finish(t, "run", "--store", p.store, "--roster", "job", "--", "true")
			require.Equal(t, 125, status)
			require.Contains(t, stderr, "keeps no roster")
			_, offered, _ := finish(t, "__complete", "transfer", "--store", p.store, "job", "--to", "")
			require.Equal(t, ":4\n", offered)
			_, found, _ := finish(t, "doctor", "--store", p.store)
			require.Contains(t, found, "OK    roster: this store keeps none")
			return
		}
		a := p.stand("a", "elected", "--roster", "--value", "at a")
		eventually(t, "a in the roster", func() bool { return len(p.status().Members) == 1 })
		_, found, _ := finish(t, "doctor", "--store", p.store)
		require.Contains(t, found, "OK    roster: candidates can be listed")
		b := p.stand("b", "heir", "--roster")
		eventually(t, "two in the roster", func() bool { return len(p.status().Members) == 2 })
		s := p.status()
		require.Equal(t, "a", s.Members[0].ID)
		require.Equal(t, "at a", s.Members[0].Value)
		require.Equal(t, election.RoleLeader, s.Members[0].Role)
		require.Equal(t, "b", s.Members[1].ID)
		require.Equal(t, election.RoleHeir, s.Members[1].Role)
		require.Greater(t, s.Members[1].Number, s.Members[0].Number)
		_, table, _ := finish(t, "status", "--store", p.store, "job")
		require.Contains(t, table, "MEMBERS")
		require.Contains(t, table, "2 candidates")
		_, offered, _ := finish(t, "__complete", "transfer", "--store", p.store, "job", "--to", "")
		require.Equal(t, "b\their\n:4\n", offered, "all but the leader, and no files")
		b.send(t, syscall.SIGTERM)
		b.status(t)
		require.Len(t, p.status().Members, 1)
		a.send(t, syscall.SIGTERM)
		a.status(t)
		require.Empty(t, p.status().Members)
	})
}

func TestARosterAndASingleAttemptExcludeEachOther(t *testing.T) {
	t.Parallel()
	status, _, stderr := finish(t, "run", "--store", "mem:", "--roster", "--try", "job", "--", "true")
	require.Equal(t, 125, status)
	require.Contains(t, stderr, "--try does not wait")
}
