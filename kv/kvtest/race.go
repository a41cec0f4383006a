package kvtest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

const atomicStep = "Each operation is one atomic step of the store. Its condition and its write cannot be separated by another client's write."

var raceCases = []Case{
	{Name: "one of many creates wins", Clause: atomicStep, check: oneOfManyCreatesWins},
	{Name: "one of many swaps at a revision wins", Clause: atomicStep, check: oneOfManySwapsAtARevisionWins},
	{Name: "one of many wins a safe whose record has expired", Clause: atomicStep, check: oneOfManyWinsASafeWhoseRecordHasExpired},
	{Name: "an owner and a usurper are never both right", Clause: atomicStep + " " + refreshProves, check: anOwnerAndAUsurperAreNeverBothRight},
	{Name: "an owner may refresh and publish at the same time", Clause: "Any number of goroutines may use a Store at the same time. Refresh changes no revision; publishing changes neither signature nor token.", check: anOwnerMayRefreshAndPublishAtTheSameTime},
	{Name: "an owner may delete while it publishes", Clause: atomicStep + " " + deletes, check: anOwnerMayDeleteWhileItPublishes},
	{Name: "owners that come and go hold the safe one at a time", Clause: atomicStep + " " + tokensGrow, check: ownersThatComeAndGoHoldTheSafeOneAtATime},
}

// rush runs f in n goroutines that start together, each with one of several
// clients, and returns the records of those that won. The others must have lost
// with the error.
func (t *trial) rush(n int, lost error, f func(kv.Store) (kv.Record, error)) []kv.Record {
	t.Helper()
	clients := []kv.Store{t.s, t.open(), t.open(), t.open()}
	recs, errs := make([]kv.Record, n), make([]error, n)
	var crowd sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		crowd.Go(func() {
			<-start
			recs[i], errs[i] = f(clients[i%len(clients)])
		})
	}
	close(start)
	crowd.Wait()
	var won []kv.Record
	for i, err := range errs {
		if err == nil {
			won = append(won, recs[i])
			continue
		}
		require.ErrorIs(t, err, lost)
	}
	return won
}

func oneOfManyCreatesWins(t *trial) {
	for range 3 {
		name := t.name()
		won := t.rush(50, kv.ErrHeld, func(s kv.Store) (kv.Record, error) {
			return s.Create(t.ctx, name, t.signed("v"))
		})
		require.Len(t, won, 1)
		t.holds(name, won[0])
	}
}

func oneOfManySwapsAtARevisionWins(t *trial) {
	name, rec := t.held()
	for i := range 6 {
		won := t.rush(20, kv.ErrStale, func(s kv.Store) (kv.Record, error) {
			next := t.signed("taken over")
			if i%2 == 0 {
				next = rec
				next.Value = next.Value + "+"
			}
			return s.Swap(t.ctx, name, rec, next)
		})
		require.Len(t, won, 1)
		rec = won[0]
		t.holds(name, rec)
	}
}

func oneOfManyWinsASafeWhoseRecordHasExpired(t *trial) {
	name, begin := t.name(), time.Now()
	old := t.create(t.s, name, t.mortal("the old"))
	deadline := begin.Add(t.lifetime(t.ttl).Max + patience)
	var early atomic.Int32
	won := t.rush(12, kv.ErrHeld, func(s kv.Store) (kv.Record, error) {
		for over := false; ; time.Sleep(t.ttl / 40) {
			rec, err := s.Create(t.ctx, name, t.signed("the next"))
			now := time.Now()
			if err == nil && now.Before(earliest(begin, old.TTL)) {
				early.Add(1)
			}
			if !errors.Is(err, kv.ErrHeld) || over || now.After(deadline) {
				return rec, err
			}
			got, err := s.Get(t.ctx, name)
			over = err == nil && got.Signature != old.Signature // somebody has won
		}
	})
	require.Zero(t, early.Load(), "a record was taken over before its TTL had passed")
	require.Len(t, won, 1)
	t.holds(name, won[0])
	t.disowned(t.s, name, old)
}

// The owner refreshes and publishes, at first almost without pause, and once more after
// the usurper's swap has returned: what begins then must fail. Its pauses grow with time, or
// the usurper of a slow store would never come between two publications.
func anOwnerAndAUsurperAreNeverBothRight(t *trial) {
	for range 5 {
		name, rec := t.held()
		var usurped atomic.Bool
		var late atomic.Int32
		var owner sync.WaitGroup
		begin := time.Now()
		owner.Go(func() {
			for after := false; !after; {
				time.Sleep(t.ttl / 10000 << min(20*time.Since(begin)/patience, 12))
				after = usurped.Load()
				mine, err := t.s.Refresh(t.ctx, name, rec)
				if err != nil {
					continue
				}
				if after {
					late.Add(1)
				}
				next := mine
				next.Value = fmt.Sprint("still ", mine.Revision)
				_, _ = t.s.Swap(t.ctx, name, mine, next)
			}
		})
		won, err := t.usurp(t.open(), name)
		usurped.Store(true)
		owner.Wait()
		require.NoError(t, err, "take %q over", name)
		require.Zero(t, late.Load(), "an owner's refresh succeeded after another had taken the safe over")
		t.holds(name, won)
	}
}

// usurp takes the safe over at the revision that it sees, however often that
// changes.
func (t *trial) usurp(s kv.Store, name string) (kv.Record, error) {
	for deadline := time.Now().Add(patience); ; time.Sleep(t.ttl / 10000) {
		rec, err := s.Get(t.ctx, name)
		if err != nil {
			return rec, err
		}
		rec, err = s.Swap(t.ctx, name, rec, t.signed("usurped"))
		if !errors.Is(err, kv.ErrStale) || time.Now().After(deadline) {
			return rec, err
		}
	}
}

// The terms of all owners count together: on a slow store some seldom come in.
func ownersThatComeAndGoHoldTheSafeOneAtATime(t *trial) {
	const owners, terms, fewest = 6, 48, 12
	name := t.name()
	var (
		inside   atomic.Int32
		overlaps atomic.Int32
		mu       sync.Mutex
		tokens   []uint64
	)
	enough := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(tokens) >= terms
	}
	deadline := time.Now().Add(4 * patience)
	t.rush(owners, nil, func(s kv.Store) (kv.Record, error) {
		for !enough() && time.Now().Before(deadline) {
			rec, err := s.Create(t.ctx, name, t.signed("v"))
			if errors.Is(err, kv.ErrHeld) {
				time.Sleep(t.ttl / 500)
				continue
			}
			if err != nil {
				return rec, err
			}
			if inside.Add(1) != 1 {
				overlaps.Add(1)
			}
			mu.Lock()
			tokens = append(tokens, rec.Token)
			mu.Unlock()
			if rec, err = s.Refresh(t.ctx, name, rec); err != nil {
				return rec, err
			}
			inside.Add(-1)
			if err = s.Delete(t.ctx, name, rec); err != nil {
				return rec, err
			}
		}
		return kv.Record{}, nil
	})
	require.Zero(t, overlaps.Load(), "two owners held the safe at one time")
	require.GreaterOrEqual(t, len(tokens), fewest, "terms within %v", 4*patience)
	order := ascending{t: t}
	for _, token := range tokens {
		order.add(kv.Record{Token: token})
	}
	t.vacant(name)
}

func anOwnerMayRefreshAndPublishAtTheSameTime(t *trial) {
	const times = 20
	name, rec := t.held()
	other := t.open()
	refreshed := make(chan error)
	go func() {
		var errs error
		for range times {
			_, err := other.Refresh(t.ctx, name, rec)
			errs = errors.Join(errs, err)
		}
		refreshed <- errs
	}()
	last, errs := rec, error(nil)
	for range times {
		next := last
		next.Value += "+"
		got, err := t.s.Swap(t.ctx, name, last, next)
		if errs = errors.Join(errs, err); err == nil {
			last = got
		}
	}
	require.NoError(t, <-refreshed, "refreshes beside publications")
	require.NoError(t, errs, "publications beside refreshes")
	t.holds(name, last)
}

// A publication that is under way does not keep its record in the safe.
func anOwnerMayDeleteWhileItPublishes(t *trial) {
	for i := range 20 {
		name, rec := t.held()
		published := make(chan error)
		go func() {
			next := rec
			next.Value = "changed"
			_, err := t.s.Swap(t.ctx, name, rec, next)
			published <- err
		}()
		time.Sleep(time.Duration(i) * t.ttl / 10000)
		deleted := t.s.Delete(t.ctx, name, rec)
		if err := <-published; err != nil {
			require.ErrorIs(t, err, kv.ErrStale, "the publication")
		}
		require.NoError(t, deleted, "the delete")
		t.vacant(name)
	}
}
