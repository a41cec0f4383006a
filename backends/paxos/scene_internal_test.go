package paxoskv

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/paxos/internal/lease"
)

func TestASceneNeverGoesBack(t *testing.T) {
	sight := func(counter uint64, live bool) lease.Sight {
		b := lease.Ballot{Counter: counter}
		return lease.Sight{Ballot: b, State: lease.State{Tenure: b}, Live: live, Life: 1 << 40}
	}
	sc := &scene{changed: make(chan struct{})}
	for _, step := range []struct {
		shown lease.Sight
		news  bool
	}{
		{sight(5, true), true},
		{sight(4, true), false},
		{sight(4, false), false},
		{sight(5, false), true},
		{sight(5, true), false},
		{sight(6, true), true},
		{lease.Sight{}, false},
	} {
		before, _, _ := sc.look()
		sc.show(step.shown)
		after, _, _ := sc.look()
		require.Equal(t, step.news, before.Ballot != after.Ballot || before.Live != after.Live, "%+v", step.shown)
	}
}
