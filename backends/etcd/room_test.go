package etcdkv_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

// A lease is full. It takes another record for each of its own that is known to be gone.
func TestARecordThatIsGoneLeavesItsRoomOnTheLease(t *testing.T) {
	client, store := dial(t, nil, testenv.Etcd(t)), open(t, nil, testenv.Etcd(t))
	records := mayShare(heldMany(t, sharer{store}, 500))
	require.Len(t, leasesOf(records), 1)
	place, heir := held(t, store)
	for i, c := range []struct {
		what string
		end  func(r kv.Held) error
	}{
		{"deleted", func(r kv.Held) error { return store.Delete(within(t, patience), r.Name, r.Record) }},
		{"taken over", func(r kv.Held) error {
			_, err := store.Swap(within(t, patience), r.Name, r.Record, signed("next"))
			return err
		}},
		{"handed over", func(r kv.Held) error {
			_, err := store.HandOver(within(t, patience), r.Name, r.Record, place, heir, "")
			return err
		}},
		{"not there when it is deleted", func(r kv.Held) error {
			remove(t, client, r.Name)
			require.ErrorIs(t, store.Delete(within(t, patience), r.Name, r.Record), kv.ErrStale)
			return nil
		}},
		{"not there when it is refreshed", func(r kv.Held) error {
			remove(t, client, r.Name)
			_, err := store.Refresh(within(t, patience), r.Name, r.Record)
			require.ErrorIs(t, err, kv.ErrStale)
			return nil
		}},
		{"not there when it is refreshed in a batch", func(r kv.Held) error {
			remove(t, client, r.Name)
			require.ErrorIs(t, kvtest.RefreshAll(t, within(t, patience), store, []kv.Held{r})[0].Err, kv.ErrStale)
			return nil
		}},
	} {
		require.NoError(t, c.end(records[i]), c.what)
		_, next := held(t, sharer{store})
		require.Equal(t, records[i].Record.Lease, next.Lease, c.what)
	}
	_, next := held(t, sharer{store})
	require.NotEqual(t, records[0].Record.Lease, next.Lease, "it is full again")
}
