package etcdkv_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// What package doc says each operation costs.
func TestEachOperationCostsWhatTheDocumentationSays(t *testing.T) {
	each(t, everyLayout(), func(t *testing.T, options layout) {
		var sent count
		store := openWith(t, &sent, options, testenv.Etcd(t))
		costs := func(op string, want int64, f func()) {
			t.Helper()
			before := sent.Load()
			f()
			require.Equal(t, want, sent.Load()-before, op)
		}
		second, heir := held(t, store)
		name := signed("").Signature
		var rec kv.Record
		var err error
		ok := func() { t.Helper(); require.NoError(t, err) }
		costs("create", 3, func() { rec, err = store.Create(within(t, patience), name, signed("v")); ok() })
		costs("create, refused", 1, func() { _, err = store.Create(within(t, patience), name, signed("v")) })
		costs("refresh", 2, func() { _, err = store.Refresh(within(t, patience), name, rec); ok() })
		costs("swap, new value", 2, func() { rec = publish(t, store, name, rec, "published") })
		if options.queue {
			var place kv.Record
			costs("join", 3, func() { place = joined(t, store, name, signed("waits")) })
			costs("stay", 2, func() { stays(t, store, name, place) })
			costs("swap, others in line", 1, func() { _, err = store.Swap(within(t, patience), name, rec, heir) })
			costs("delete of a place, with a lease for the next", 2, func() { err = store.Delete(within(t, patience), name, place); ok() })
		}
		costs("swap, takeover", 3, func() { rec, err = store.Swap(within(t, patience), name, rec, signed("next")); ok() })
		costs("swap, hand-over", 4, func() { rec, err = store.Swap(within(t, patience), name, rec, heir); ok() })
		rec, err = store.Swap(within(t, patience), name, rec, signed("again"))
		ok()
		stale := rec
		stale.Revision++
		costs("hand-over in one step, refused", 1, func() {
			_, err = store.HandOver(within(t, patience), name, stale, second, heir, "note")
			require.ErrorIs(t, err, kv.ErrStale)
		})
		costs("hand-over in one step", 1, func() {
			rec, err = store.HandOver(within(t, patience), name, rec, second, heir, "note")
			ok()
		})
		gets := int64(1)
		if options.Plain {
			gets = 2
		}
		costs("get", gets, func() { _, err = store.Get(within(t, patience), name); ok() })
		require.NoError(t, store.Delete(within(t, patience), second, heir))
		grants := int64(1)
		if options.queue { // beside the delete of the place
			grants = 0
		}
		for began := time.Now(); ; grants = 1 {
			costs("delete, with a lease for the next", 1+grants, func() { err = store.Delete(within(t, patience), name, rec); ok() })
			before := sent.Load()
			rec, err = store.Create(within(t, patience), name, signed("v"))
			ok()
			if sent.Load()-before == 3 {
				break
			}
			require.Less(t, time.Since(began), patience, "create with the lease that is ready: %d requests", sent.Load()-before)
		}
		published := publish(t, store, name, rec, "published")
		costs("delete of what has changed, with a lease for the next", 4, func() { err = store.Delete(within(t, patience), name, rec); ok() })
		require.NotEqual(t, rec, published)
		costs("get nothing", 1, func() { _, err = store.Get(within(t, patience), name) })
		require.ErrorIs(t, err, kv.ErrVacant)
	})
}
