package sqlkv_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	sqlkv "github.com/electkv/election/backends/sql"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// TestAWriteThatChangesNothingIsOneAllTheSame writes what is there already, with both
// meanings of the number of affected rows, and both ways to send arguments.
func TestAWriteThatChangesNothingIsOneAllTheSame(t *testing.T) {
	t.Parallel()
	p := inMariaDB(t, testenv.MariaDB(t))
	for _, settings := range []string{"clientFoundRows=false", "clientFoundRows=true", "interpolateParams=true", "clientFoundRows=true&interpolateParams=true", "charset=latin1"} {
		t.Run(settings, func(t *testing.T) {
			db := p.open(t, p.asks(settings))
			for _, store := range []kv.Store{sqlkv.New(db, p.dialect, p.opts()), sqlkv.NewObserved(db, p.dialect, p.opts())} {
				name := named() + " é"
				rec := signed("\x00\xff'\\")
				rec.Note = "ключ"
				rec, err := store.Create(within(t, patience), name, rec)
				require.NoError(t, err)
				_, err = store.Create(within(t, patience), name, signed("w"))
				require.ErrorIs(t, err, kv.ErrHeld)
				for range 20 {
					got, err := store.Refresh(within(t, patience), name, rec)
					require.NoError(t, err)
					require.Equal(t, rec, got)
				}
				got, err := store.Swap(within(t, patience), name, rec, rec)
				require.NoError(t, err)
				other := got
				other.Token++
				_, err = store.Refresh(within(t, patience), name, other)
				require.ErrorIs(t, err, kv.ErrStale)
				require.ErrorIs(t, store.Delete(within(t, patience), name, other), kv.ErrStale)
				require.NoError(t, store.Delete(within(t, patience), name, got))
				require.ErrorIs(t, store.Delete(within(t, patience), name, got), kv.ErrStale)
			}
		})
	}
}

// TestASessionThatNeverCommitsIsRefused has a data source with autocommit off.
func TestASessionThatNeverCommitsIsRefused(t *testing.T) {
	t.Parallel()
	p := inMariaDB(t, testenv.MariaDB(t))
	store := sqlkv.New(p.open(t, p.asks("autocommit=0")), p.dialect, p.opts())
	_, err := store.Create(within(t, patience), named(), signed("v"))
	undecided(t, err, "create")
	require.ErrorContains(t, err, "autocommit")
	_, err = store.Get(within(t, patience), named())
	require.ErrorContains(t, err, "autocommit")

	// Nor is a row written to that is there already.
	name, rec := held(t, p.store(t))
	p.refusesAll(t, store, name, rec)
	_, err = store.Swap(within(t, patience), name, rec, signed("v"))
	undecided(t, err, "swap")
	require.NoError(t, p.store(t).Delete(within(t, patience), name, rec))
	_, err = store.Create(within(t, patience), name, signed("v"))
	undecided(t, err, "create")
}
