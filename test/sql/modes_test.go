package sqlkv_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	sqlkv "github.com/electkv/election/backends/sql"
	"github.com/electkv/election/kv"
)

// TestObserversNeverJudgeARecordThatTheStoreJudges has one that has long expired by
// the store's clock. To observers it is somebody's lock.
func TestObserversNeverJudgeARecordThatTheStoreJudges(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		p.reports(t)
		store, observed := p.store(t), p.observed(t)
		name := named()
		rec, err := store.Create(within(t, patience), name, mortal(500*time.Millisecond))
		require.NoError(t, err)
		foreign, err := observed.Get(within(t, patience), name)
		require.NoError(t, err)
		require.True(t, foreign.Foreign)
		require.False(t, foreign.Permanent)
		require.Equal(t, rec.Value, foreign.Value)
		p.expire(t, name)
		for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			_, err = observed.Create(within(t, patience), name, mortal(500*time.Millisecond))
			require.ErrorIs(t, err, kv.ErrHeld)
		}
		_, err = observed.Refresh(within(t, patience), name, rec)
		require.ErrorIs(t, err, kv.ErrStale)
		_, err = observed.Swap(within(t, patience), name, rec, signed("usurper"))
		require.ErrorIs(t, err, kv.ErrStale)
		require.ErrorIs(t, observed.Delete(within(t, patience), name, rec), kv.ErrStale)
		require.False(t, p.writes(t, p.hand, observed, name, rec), "guarded by the wrong judge")
		// Whoever the store judges for may take it.
		next, err := store.Create(within(t, patience), name, signed("the next"))
		require.NoError(t, err)
		require.Greater(t, next.Token, rec.Token)
		require.NoError(t, store.Delete(within(t, patience), name, next))
		last, err := observed.Create(within(t, patience), name, signed("an observed one"))
		require.NoError(t, err, "what was given up is everybody's")
		require.Greater(t, last.Token, next.Token, "tokens grow across the two")
	})
}

// TestTheStoreNeverJudgesARecordThatObserversJudge has one that is ages old.
func TestTheStoreNeverJudgesARecordThatObserversJudge(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		p.reports(t)
		store, observed := p.store(t), p.observed(t)
		name := named()
		rec, err := observed.Create(within(t, patience), name, mortal(500*time.Millisecond))
		require.NoError(t, err)
		p.do(t, "UPDATE election SET updated = '2001-01-01 00:00:00' WHERE name = ?", name)
		foreign, err := store.Get(within(t, patience), name)
		require.NoError(t, err)
		require.True(t, foreign.Foreign)
		require.True(t, foreign.Permanent)
		for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			_, err = store.Create(within(t, patience), name, signed("usurper"))
			require.ErrorIs(t, err, kv.ErrHeld)
		}
		_, err = store.Refresh(within(t, patience), name, rec)
		require.ErrorIs(t, err, kv.ErrStale)
		_, err = store.Swap(within(t, patience), name, rec, signed("usurper"))
		require.ErrorIs(t, err, kv.ErrStale)
		require.ErrorIs(t, store.Delete(within(t, patience), name, rec), kv.ErrStale)
		require.False(t, p.writes(t, p.hand, store, name, rec), "guarded by the wrong judge")
		observed = p.observed(t) // one that has not seen it age
		got, err := observed.Refresh(within(t, patience), name, rec)
		require.NoError(t, err)
		require.Equal(t, rec, got)
		require.NoError(t, p.observed(t).Delete(within(t, patience), name, got))
		next, err := store.Create(within(t, patience), name, signed("a judged one"))
		require.NoError(t, err, "what was given up is everybody's")
		require.Greater(t, next.Token, rec.Token, "tokens grow across the two")
	})
}

// TestWhatAHandHasWrittenIsSomebodysLock writes rows that are not quite ours.
func TestWhatAHandHasWrittenIsSomebodysLock(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		p.both(t, func(t *testing.T, store guarded) {
			for _, change := range []string{
				"signature = NULL", "token = 0", "revision = 0", "ttl = 0", "ttl = -1", "ttl = 9000000000000000000",
			} {
				name, rec := held(t, store)
				p.do(t, "UPDATE election SET "+change+" WHERE name = ?", name)
				got, err := store.Get(within(t, patience), name)
				require.NoError(t, err, change)
				require.True(t, got.Foreign, change)
				require.Equal(t, rec.Value, got.Value)
				_, err = store.Create(within(t, patience), name, signed("v"))
				require.ErrorIs(t, err, kv.ErrHeld, change)
				if strings.HasPrefix(change, "ttl = 0") || strings.HasPrefix(change, "ttl = -") {
					p.leftAlone(t, store, name, rec)
				}
				again, err := store.Get(within(t, patience), name)
				require.NoError(t, err)
				require.Equal(t, got, again, "it is left alone, and looks the same")
			}
			// A vacancy by hand is one.
			name, rec := held(t, store)
			p.do(t, "UPDATE election SET signature = '' WHERE name = ?", name)
			_, err := store.Get(within(t, patience), name)
			require.ErrorIs(t, err, kv.ErrVacant)
			_, err = store.Refresh(within(t, patience), name, rec)
			require.ErrorIs(t, err, kv.ErrStale)
			next, err := store.Create(within(t, patience), name, signed("v"))
			require.NoError(t, err)
			require.Greater(t, next.Token, rec.Token)
		})
	})
}

// leftAlone requires that not even who once owned the record changes it now.
func (p *place) leftAlone(t testing.TB, store kv.Store, name string, rec kv.Record) {
	t.Helper()
	_, err := store.Refresh(within(t, patience), name, rec)
	require.ErrorIs(t, err, kv.ErrStale)
	for _, next := range []kv.Record{rec, signed("the heir")} {
		_, err = store.Swap(within(t, patience), name, rec, next)
		require.ErrorIs(t, err, kv.ErrStale)
	}
	require.ErrorIs(t, store.Delete(within(t, patience), name, rec), kv.ErrStale)
}

// TestObserversLookInTimeForRefreshes has them look so rarely, by their options, that
// they would miss each refresh of a live owner.
func TestObserversLookInTimeForRefreshes(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		const ttl = 3 * time.Second
		owner := p.observed(t)
		name := named()
		rec, err := owner.Create(within(t, patience), name, mortal(ttl))
		require.NoError(t, err)
		ctx := within(t, 2*ttl+ttl/2) // a watch that is told nothing gives up after two
		var refreshing sync.WaitGroup
		refreshing.Go(func() {
			for ; ctx.Err() == nil; time.Sleep(ttl / 10) {
				_, _ = owner.Refresh(ctx, name, rec) // what comes of it is seen by the watch
			}
		})
		defer refreshing.Wait()
		observer := sqlkv.NewObserved(p.open(t, ""), p.dialect, rarely())
		for _, err := range observer.Watch(ctx, name) {
			if err != nil && ctx.Err() == nil {
				require.ErrorIs(t, err, kv.ErrVacant) // on a host that stands still, perhaps
			}
		}
	})
}

// TestObserversJudgeNothingShorterThanTheyCanSee tells what would be right.
func TestObserversJudgeNothingShorterThanTheyCanSee(t *testing.T) {
	p := inSQLite(t)
	_, err := p.observed(t).Create(within(t, patience), named(), mortal(499*time.Millisecond))
	require.ErrorIs(t, err, kv.ErrInvalid)
	require.ErrorContains(t, err, "at least 500ms")
	life, err := p.observed(t).Lifetime(500 * time.Millisecond)
	require.NoError(t, err)
	require.Equal(t, 500*time.Millisecond, life.Min)
}
