package etcdkv_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// strangers are what may lie at a companion's key and is not left there by an old
// record of ours.
func strangers(t testing.TB, client *clientv3.Client) map[string]func(key string) {
	t.Helper()
	lease, err := client.Grant(within(t, patience), 600)
	require.NoError(t, err)
	ours := kv.Encode(signed(""))
	return map[string]func(key string){
		"data":                     func(key string) { put(t, client, key, "precious") },
		"no data":                  func(key string) { put(t, client, key, "") },
		"data with a lease":        func(key string) { put(t, client, key, "precious", clientv3.WithLease(lease.ID)) },
		"our text without a lease": func(key string) { put(t, client, key, ours) },
		"a text from the future": func(key string) {
			put(t, client, key, `{"election":2,"signature":"s","ttl_ms":1000}`, clientv3.WithLease(lease.ID))
		},
	}
}

func TestSomebodyElsesDataAtTheCompanionIsLeftAlone(t *testing.T) {
	options := plain()[0]
	client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
	for what, harm := range strangers(t, client) {
		late, meddle := meddledWith(t, options, "/LeaseGrant") // after the look
		for how, s := range map[string]anyStore{"before": store, "meanwhile": late} {
			name := signed("").Signature
			companion := name + ".election"
			if s == late {
				*meddle = func() { harm(companion) }
			} else {
				harm(companion)
			}
			_, err := s.Create(within(t, patience), name, signed("v"))
			require.ErrorIs(t, err, kv.ErrHeld, "%s %s", what, how)
			require.ErrorContains(t, err, prefix+companion)
			there := pair(t, client, companion).Kvs
			require.Len(t, there, 1, "%s %s", what, how)
			require.EqualValues(t, 1, there[0].Version, "%s %s: it was written over", what, how)
			require.Empty(t, pair(t, client, name).Kvs)
			_, err = s.Get(within(t, patience), name)
			require.ErrorIs(t, err, kv.ErrVacant)

			remove(t, client, companion)
			rec, err := s.Create(within(t, patience), name, signed("v"))
			require.NoError(t, err)
			require.NoError(t, s.Delete(within(t, patience), name, rec))
		}
	}
}

// The companion was changed after the owner has read it, or has written it last.
func TestAnOwnerWritesNothingOnceItsCompanionHasChanged(t *testing.T) {
	each(t, plain(), func(t *testing.T, options layout) {
		client := dial(t, nil, testenv.Etcd(t))
		store, meddle := meddledWith(t, options, "/Txn")
		_, heir := held(t, store)
		for what, write := range map[string]func(name string, rec kv.Record) error{
			"publish": func(name string, rec kv.Record) error {
				_, err := store.Swap(within(t, patience), name, rec, kv.Record{Signature: rec.Signature})
				return err
			},
			"take over": func(name string, rec kv.Record) error {
				_, err := store.Swap(within(t, patience), name, rec, signed("next"))
				return err
			},
			"hand over": func(name string, rec kv.Record) error {
				_, err := store.Swap(within(t, patience), name, rec, heir)
				return err
			},
			"delete": func(name string, rec kv.Record) error { return store.Delete(within(t, patience), name, rec) },
		} {
			name, rec := held(t, store)
			key, companion := where(options, name, rec)
			*meddle = func() { put(t, client, companion, "precious") }
			if harm := *meddle; what != "delete" { // the first Txn is a read
				*meddle = func() { *meddle = harm }
			}
			require.ErrorIs(t, write(name, rec), kv.ErrStale, what)
			require.Nil(t, *meddle, what)
			require.Equal(t, "precious", string(pair(t, client, companion).Kvs[0].Value), what)
			require.Equal(t, rec.Value, string(pair(t, client, key).Kvs[0].Value), what)
			require.Equal(t, []string{key}, places(t, client, options, name), what)
		}
	})
}
