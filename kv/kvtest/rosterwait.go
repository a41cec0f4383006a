package kvtest

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"
)

// awaitsMembers begins to wait for a change, and returns what says when that is over.
func (r *rota) awaitsMembers(version uint64) <-chan error {
	over := make(chan error, 1)
	go func() { over <- r.store.AwaitMembers(r.ctx, r.roster, version) }()
	return over
}

// hears requires that a wait ends soon, or within a while.
func (r *rota) hears(over <-chan error, while time.Duration) {
	r.Helper()
	timer := time.NewTimer(while + patience)
	defer timer.Stop()
	select {
	case err := <-over:
		require.NoError(r, err)
	case <-timer.C:
		require.FailNow(r, "nobody has told of a change")
	}
}

func whoWaitsForAChangeHearsOfIt(r *rota) {
	one := r.enters(r.s, r.signed("a"))
	for range 3 {
		_, version := r.list()
		over := r.awaitsMembers(version)
		time.Sleep(r.ttl / 10)
		r.delete(r.s, one.Name, one.Record)
		r.hears(over, 0)
		_, version = r.list()
		over = r.awaitsMembers(version)
		time.Sleep(r.ttl / 10)
		one = r.enters(r.s, r.signed("b"))
		r.hears(over, 0)
	}
}

func whoWaitsHearsOfAChangeBefore(r *rota) {
	r.enters(r.s, r.signed("a"))
	_, version := r.list()
	two := r.enters(r.s, r.signed("b"))
	r.hears(r.awaitsMembers(version), 0)
	_, version = r.list()
	r.delete(r.s, two.Name, two.Record)
	r.hears(r.awaitsMembers(version), 0)
}

func whoWaitsHearsThatARecordHasFaded(r *rota) {
	start := time.Now()
	one := r.enters(r.s, r.mortal("a"))
	deadline := start.Add(r.lifetime(one.Record.TTL).Max + patience)
	for {
		all, version := r.list()
		if len(all) == 0 {
			return
		}
		require.True(r, time.Now().Before(deadline), "it has not faded")
		r.hears(r.awaitsMembers(version), time.Until(deadline))
	}
}

func aRostersOperationsReturnPromptly(r *rota) {
	ctx, cancel := context.WithCancel(r.ctx)
	_, version := r.list()
	over := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			if err := r.store.AwaitMembers(ctx, r.roster, version); err != nil {
				over <- err
				return
			}
		}
		over <- context.Cause(ctx)
	}()
	time.Sleep(r.ttl / 10)
	start := time.Now()
	cancel()
	late := time.NewTimer(promptly)
	defer late.Stop()
	select {
	case err := <-over:
		require.ErrorIs(r, err, context.Canceled)
	case <-late.C:
		require.FailNow(r, "AwaitMembers does not return")
	}
	_, _, err := r.store.Members(ctx, r.roster, 10)
	require.ErrorIs(r, err, context.Canceled)
	require.ErrorIs(r, r.store.AwaitMembers(ctx, r.roster, version), context.Canceled)
	require.Less(r, time.Since(start), promptly)
}
