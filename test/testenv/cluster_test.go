//go:build unix

package testenv_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

// A replicated store is one that has clusters.
type replicated struct {
	store
	cluster func(testing.TB) *testenv.Cluster
}

func eachCluster(t *testing.T, test func(t *testing.T, r replicated)) {
	for _, r := range []replicated{
		{stores[0], func(t testing.TB) *testenv.Cluster { return testenv.StartEtcdCluster(t) }},
		{stores[1], func(t testing.TB) *testenv.Cluster { return testenv.StartConsulCluster(t) }},
	} {
		t.Run(r.name, func(t *testing.T) { test(t, r) })
	}
}

func TestClusterHasOneLeaderAndServesOnEveryNode(t *testing.T) {
	eachCluster(t, func(t *testing.T, r replicated) {
		c := r.cluster(t)
		require.Len(t, c.Addrs(), 3)
		require.Contains(t, c.Nodes, c.Leader())

		require.NoError(t, r.put(within(t), c.Addrs()[0], "k", "v"))
		for _, addr := range c.Addrs() {
			got, err := r.get(within(t), addr, "k")
			require.NoError(t, err)
			require.Equal(t, "v", got)
		}
	})
}

func TestClusterElectsAnotherLeader(t *testing.T) {
	eachCluster(t, func(t *testing.T, r replicated) {
		c := r.cluster(t)

		first := c.Leader()
		first.Pause()
		second := c.Leader()
		require.NotSame(t, first, second)
		first.Continue()

		third := c.Leader()
		third.Kill()
		next := c.Leader()
		require.NotSame(t, third, next)
		require.NoError(t, r.put(within(t), next.Addr(), "k", "while one is away"))

		third.Restart()
		got, err := r.get(within(t), third.Addr(), "k")
		require.NoError(t, err)
		require.Equal(t, "while one is away", got)
	})
}

func TestClusterComesBackAfterAllNodesWereKilled(t *testing.T) {
	eachCluster(t, func(t *testing.T, r replicated) {
		c := r.cluster(t)
		require.NoError(t, r.put(within(t), c.Leader().Addr(), "k", "kept"))
		for _, s := range c.Nodes {
			s.Kill()
		}
		for _, s := range slices.Backward(c.Nodes) {
			s.Restart()
		}
		leader := c.Leader()
		got, err := r.get(within(t), leader.Addr(), "k")
		require.NoError(t, err)
		require.Equal(t, "kept", got)
	})
}

func TestNodeWithoutMajorityDoesNotServe(t *testing.T) {
	eachCluster(t, func(t *testing.T, r replicated) {
		c := r.cluster(t)
		c.Nodes[0].Kill()
		c.Nodes[1].Kill()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.Error(t, r.put(ctx, c.Nodes[2].Addr(), "k", "v"))

		c.Nodes[0].Restart()
		require.NoError(t, r.put(within(t), c.Leader().Addr(), "k", "v"))
	})
}
