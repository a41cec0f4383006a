package etcdkv_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// A room is where one may be at a time.
type room struct {
	inside   atomic.Int32
	overlaps atomic.Int32
	mu       sync.Mutex
	tokens   []uint64
}

func (r *room) visit(token uint64) {
	if r.inside.Add(1) != 1 {
		r.overlaps.Add(1)
	}
	time.Sleep(time.Millisecond) // who comes in too early meets somebody
	r.mu.Lock()
	r.tokens = append(r.tokens, token)
	r.mu.Unlock()
	r.inside.Add(-1)
}

// Old and new come and go, and neither starves.
func TestOldAndNewHoldTheSafeOneAtATime(t *testing.T) {
	t.Parallel() // it mostly waits
	const each, times = 3, 15
	for _, options := range queues() {
		t.Run(title(options), func(t *testing.T) {
			client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
			name, ctx := signed("").Signature, within(t, 2*patience)
			var r room
			var crowd sync.WaitGroup
			errs := make(chan error, 2*each)
			for range each {
				old := mutex(t, client, name)
				crowd.Go(func() { errs <- visitAsOld(ctx, old, &r, times) })
				crowd.Go(func() { errs <- visitAsNew(ctx, store, name, &r, times) })
			}
			crowd.Wait()
			for range 2 * each {
				require.NoError(t, <-errs)
			}
			require.Zero(t, r.overlaps.Load(), "two were inside at one time")
			require.Len(t, r.tokens, 2*each*times)
			for i := range r.tokens[1:] {
				require.Greater(t, r.tokens[i+1], r.tokens[i], "visit %d", i+1)
			}
			require.Empty(t, places(t, client, options, name))
		})
	}
}

func visitAsOld(ctx context.Context, m *concurrency.Mutex, r *room, times int) error {
	for range times {
		if err := m.Lock(ctx); err != nil {
			return fmt.Errorf("an old lock: %w", err)
		}
		owner := pb.Compare(m.IsOwner())
		r.visit(uint64(owner.GetCreateRevision()))
		if err := m.Unlock(ctx); err != nil {
			return fmt.Errorf("an old unlock: %w", err)
		}
	}
	return nil
}

func visitAsNew(ctx context.Context, store anyStore, name string, r *room, times int) error {
	for range times {
		place, err := store.(kv.Queue).Join(ctx, name, signed("ours"))
		if err != nil {
			return err
		}
		for rec, err := range store.Watch(ctx, name) {
			if err != nil && !errors.Is(err, kv.ErrVacant) {
				return err
			}
			if rec.Owns(place) {
				break
			}
		}
		if _, leads, err := store.(kv.Queue).Stay(ctx, name, place); err != nil || !leads {
			return fmt.Errorf("the first in line does not lead: %w", err)
		}
		r.visit(place.Token)
		if err := store.Delete(ctx, name, place); err != nil {
			return err
		}
	}
	return nil
}

// The engine stands in line by itself where the store has one.
func TestACandidateWaitsInLineBetweenOldClients(t *testing.T) {
	each(t, queues(), func(t *testing.T, options layout) {
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		name := signed("").Signature
		first, third := mutex(t, client, name), mutex(t, client, name)
		require.NoError(t, first.Lock(within(t, patience)))
		led := make(chan *election.Term, 1)
		go func() {
			defer close(led)
			c, err := election.New(store, name, nil)
			if err != nil {
				t.Error(err)
				return
			}
			term, err := c.Campaign(within(t, patience))
			if err != nil {
				t.Error(err)
				return
			}
			led <- term
		}()
		awaitPlaces(t, client, options, name, 2)
		locked := locking(t, client, options, name, third)
		require.NoError(t, first.Unlock(within(t, patience)))
		term := <-led
		require.NotNil(t, term)
		require.Empty(t, locked)
		require.Greater(t, term.Token(), uint64(first.Header().Revision))
		require.True(t, writes(t, client, store, name, term.Record()))
		require.NoError(t, term.Resign(within(t, patience)))
		require.NoError(t, <-locked)
	})
}
