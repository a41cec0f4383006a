package paxoskv

import (
	"testing"
	"time"

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
		sc.show(step.shown, time.Time{})
		after, _, _ := sc.look()
		require.Equal(t, step.news, before.Ballot != after.Ballot || before.Live != after.Live, "%+v", step.shown)
	}
}

func TestAnAnswerCorrectsNewsThatCameBeforeItsQuestion(t *testing.T) {
	ballot := lease.Ballot{Counter: 5}
	truth := lease.Result{Verdict: lease.Found, Sight: lease.Sight{Ballot: ballot, State: lease.State{Tenure: ballot}, Live: true, Life: 1 << 40}}
	for name, lie := range map[string]lease.Sight{
		"a vacancy to come": {Ballot: lease.Ballot{Counter: lease.MaxCounter}},
		"a vacancy now":     {Ballot: ballot},
		"a leader":          {Ballot: lease.Ballot{Counter: lease.MaxCounter}, State: lease.State{Tenure: ballot}, Live: true, Life: 1 << 40},
	} {
		all := scenes{on: map[string]*scene{}}
		sc := all.enter("s")
		before := time.Now().Add(-time.Second)
		all.tell("s", lie)
		all.show("s", truth, before)
		sight, _, _ := sc.look()
		require.Equal(t, lie, sight, "%s: the question was asked before", name)
		unclear := truth
		unclear.Verdict = lease.Unclear
		all.show("s", unclear, time.Now().Add(time.Second))
		sight, _, _ = sc.look()
		require.Equal(t, lie, sight, "%s: no majority has said it", name)
		all.show("s", truth, time.Now().Add(time.Second))
		sight, _, _ = sc.look()
		require.Equal(t, truth.Sight, sight, name)
	}
}
