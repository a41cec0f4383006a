package consulkv

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/consul/api"
)

// A check is one Txn that looks at the keys of many watches. Others join it until it is sent or
// full. If all watches leave it, it ends.
type check struct {
	kind   lookKind
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}

	watches int            // that wait for it; guarded by the connections
	ops     []*api.KVTxnOp // likewise, until it is sent
	bytes   int            // of ops, at most
	same    []bool         // for each of ops, once done: the condition holds
	found   api.KVPairs    // likewise: what was read, or none of it
}

// A lookKind is what a check looks for.
type lookKind int

const (
	forChanges lookKind = iota // by conditions, which bring no values along
	forValues
	lookKinds
)

// most returns how many operations a check has at most.
func (k lookKind) most() int {
	if k == forValues {
		return valuesAtOnce
	}
	return txnOps
}

// valuesAtOnce is how many keys a check reads at most.
const valuesAtOnce = 64

// unchanged reports whether the conditions hold. If nobody can say, it reports false.
func (c *connections) unchanged(ctx context.Context, client *api.Client, conditions []*api.KVTxnOp) (bool, error) {
	k, from, err := c.joinCheck(ctx, client, forChanges, conditions)
	if err != nil {
		return false, err
	}
	same := true
	for i := range conditions {
		same = same && k.same[from+i]
	}
	return same, nil
}

// readTogether returns what keys hold, nil for each that is not there. If nobody can say, it
// returns none.
func (c *connections) readTogether(ctx context.Context, client *api.Client, keys ...string) (api.KVPairs, error) {
	gets := make([]*api.KVTxnOp, len(keys))
	for i, key := range keys {
		gets[i] = &api.KVTxnOp{Verb: api.KVGetOrEmpty, Key: key}
	}
	k, from, err := c.joinCheck(ctx, client, forValues, gets)
	if err != nil || len(k.found) != len(k.ops) { // what the client may not read is left out
		return nil, err
	}
	found := slices.Clone(k.found[from : from+len(keys)])
	for i, pair := range found {
		if pair.ModifyIndex == 0 {
			found[i] = nil
		}
	}
	return found, nil
}

// joinCheck adds operations to the next check and waits for it. It returns where they are.
func (c *connections) joinCheck(ctx context.Context, client *api.Client, kind lookKind, ops []*api.KVTxnOp) (k *check, from int, _ error) {
	bytes := 0
	for _, op := range ops {
		bytes += sizeOf(op.Key)
	}
	c.mu.Lock()
	if k = c.open[kind]; k == nil || len(k.ops)+len(ops) > kind.most() || k.bytes+bytes > longestTxn {
		k = &check{kind: kind, done: make(chan struct{})}
		k.ctx, k.cancel = context.WithCancel(context.Background())
		c.open[kind] = k
		go c.check(k, client)
	}
	k.watches++
	from = len(k.ops)
	k.ops = append(k.ops, ops...)
	k.bytes += bytes
	c.mu.Unlock()
	select {
	case <-k.done:
		c.leaveCheck(k)
		return k, from, nil
	case <-ctx.Done():
	}
	if c.leaveCheck(k) {
		<-k.done
	}
	return k, from, context.Cause(ctx)
}

// leaveCheck reports whether nobody else waits for the check. That ends it.
func (c *connections) leaveCheck(k *check) (last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.watches--; k.watches > 0 {
		return false
	}
	c.closeCheck(k)
	k.cancel()
	return true
}

// closeCheck has nobody join a check any more. It is called with the mutex held.
func (c *connections) closeCheck(k *check) {
	if c.open[k.kind] == k {
		c.open[k.kind] = nil
	}
}

// check carries a check out, when it is its turn.
func (c *connections) check(k *check, client *api.Client) {
	defer close(k.done)
	leave, err := c.turn.Enter(k.ctx)
	defer leave()
	if err == nil {
		err = sleep(k.ctx, c.untilCheck(time.Now()))
	}
	c.mu.Lock()
	c.closeCheck(k)
	c.mu.Unlock()
	k.same = make([]bool, len(k.ops))
	if err == nil {
		c.look(k, client)
	}
}

// look finds out which conditions hold: all of those that a Txn has which is not refused. What
// was refused is left out of the next one. Of those that a refusal does not name it proves
// nothing: they may not have been looked at.
func (c *connections) look(k *check, client *api.Client) {
	left := make([]int, len(k.ops))
	for i := range left {
		left[i] = i
	}
	for tries := 0; tries < refusalsOfTxn && len(left) > 0; tries++ {
		ops := make([]*api.KVTxnOp, len(left))
		for i, j := range left {
			ops[i] = k.ops[j]
		}
		err := c.pollAfter(k.ctx, func(time.Time) time.Duration { return 0 }, func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, answerSlack)
			defer cancel()
			found, err := transact(ctx, client, ops, &api.QueryOptions{RequireConsistent: true})
			k.found = found
			return err
		})
		if err == nil {
			for _, j := range left {
				k.same[j] = true
			}
			return
		}
		no, refusing := errors.AsType[*refusal](err)
		if !refusing {
			return
		}
		named := no.ops()
		var others []int
		for i, j := range left {
			if !named[i] {
				others = append(others, j)
			}
		}
		left = others
	}
}
