package etcdkv_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// plain returns the layouts whose values stand alone.
func plain() []layout {
	var layouts []layout
	for _, options := range everyLayout() {
		if options.Plain {
			layouts = append(layouts, options)
		}
	}
	return layouts
}

// where returns the key of a record, and its companion's.
func where(options layout, name string, rec kv.Record) (key, companion string) {
	if !options.lined() {
		return name, name + ".election"
	}
	return name + "/" + rec.Lease, name + ".election/" + rec.Lease
}

func pair(t testing.TB, client *clientv3.Client, key string) *clientv3.GetResponse {
	t.Helper()
	resp, err := client.Get(within(t, patience), prefix+key)
	require.NoError(t, err)
	return resp
}

func TestAPlainValueStandsAloneAndItsRecordBesideIt(t *testing.T) {
	each(t, plain(), func(t *testing.T, options layout) {
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		name, rec := held(t, store)
		key, companion := where(options, name, rec)
		check := func() {
			t.Helper()
			value, beside := pair(t, client, key), pair(t, client, companion)
			require.Equal(t, rec.Value, string(value.Kvs[0].Value))
			require.Equal(t, value.Kvs[0].ModRevision, beside.Kvs[0].ModRevision)
			require.EqualValues(t, leaseOf(t, rec), value.Kvs[0].Lease)
			require.EqualValues(t, leaseOf(t, rec), beside.Kvs[0].Lease)
			text := kv.Decode(string(beside.Kvs[0].Value))
			require.Equal(t, rec.Signature, text.Signature)
			require.Empty(t, text.Value, "it is there once already")
			require.Equal(t, rec.Note, text.Note)
		}
		check()
		rec = publish(t, store, name, rec, "10.0.0.7:80")
		check()
		next := rec
		next.Note = `{"rank":7}`
		next, err := store.Swap(within(t, patience), name, rec, next)
		require.NoError(t, err)
		rec = next
		check()
		next = signed("10.0.0.8:80")
		next.Note = `{"rank":8}`
		next, err = store.Swap(within(t, patience), name, rec, next)
		require.NoError(t, err)
		old, oldCompanion := key, companion
		rec = next
		key, companion = where(options, name, rec)
		check()
		if key != old {
			require.Empty(t, pair(t, client, old).Kvs)
			require.Empty(t, pair(t, client, oldCompanion).Kvs)
		}
		require.NoError(t, store.Delete(within(t, patience), name, rec))
		require.Empty(t, pair(t, client, key).Kvs)
		require.Empty(t, pair(t, client, companion).Kvs)
		resp, err := client.TimeToLive(within(t, patience), leaseOf(t, rec), clientv3.WithAttachedKeys())
		require.NoError(t, err)
		require.Empty(t, resp.Keys)
	})
}

// One Txn was the last to write both, and they live equally long. Anything else
// proves nothing.
func TestAValueIsOursOnlyIfItsCompanionProvesIt(t *testing.T) {
	each(t, plain(), func(t *testing.T, options layout) {
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		other, err := client.Grant(within(t, patience), 600)
		require.NoError(t, err)
		for what, harm := range map[string]func(key, companion, text string, rec kv.Record){
			"overwritten": func(key, _, _ string, rec kv.Record) {
				put(t, client, key, rec.Value)
			},
			"overwritten with its lease": func(key, _, _ string, rec kv.Record) {
				put(t, client, key, rec.Value, clientv3.WithLease(leaseOf(t, rec)))
			},
			"deleted and put again with its lease": func(key, _, _ string, rec kv.Record) {
				remove(t, client, key)
				put(t, client, key, rec.Value, clientv3.WithLease(leaseOf(t, rec)))
			},
			"without a companion": func(_, companion, _ string, _ kv.Record) {
				remove(t, client, companion)
			},
			"with another companion": func(_, companion, text string, rec kv.Record) {
				put(t, client, companion, text, clientv3.WithLease(leaseOf(t, rec)))
			},
			"with a companion from the future": func(key, companion, _ string, rec kv.Record) {
				both(t, client, clientv3.OpPut(prefix+key, rec.Value, clientv3.WithLease(leaseOf(t, rec))),
					clientv3.OpPut(prefix+companion, `{"election":2,"signature":"s","ttl_ms":1000}`, clientv3.WithLease(leaseOf(t, rec))))
			},
			"with a companion that lives longer": func(key, companion, text string, rec kv.Record) {
				both(t, client, clientv3.OpPut(prefix+key, rec.Value, clientv3.WithLease(leaseOf(t, rec))),
					clientv3.OpPut(prefix+companion, text, clientv3.WithLease(other.ID)))
			},
		} {
			name, rec := held(t, store)
			rec = publish(t, store, name, rec, "published") // the text has the token now
			key, companion := where(options, name, rec)
			harm(key, companion, string(pair(t, client, companion).Kvs[0].Value), rec)
			got, err := store.Get(within(t, patience), name)
			require.NoError(t, err, what)
			require.True(t, got.Foreign, "%s: %+v", what, got)
			require.Equal(t, rec.Value, got.Value)
			require.Equal(t, got, watching(t, store, name).next().rec, what)
			requireLost(t, store, name, rec)
			require.ErrorIs(t, store.Delete(within(t, patience), name, rec), kv.ErrStale, what)
			_, err = store.Swap(within(t, patience), name, rec, kv.Record{Signature: rec.Signature})
			require.ErrorIs(t, err, kv.ErrStale, what)
			_, err = store.Create(within(t, patience), name, signed("v"))
			require.ErrorIs(t, err, kv.ErrHeld, what)
			require.Equal(t, rec.Value, string(pair(t, client, key).Kvs[0].Value), what)
		}
	})
}

// both writes two keys in one Txn.
func both(t testing.TB, client *clientv3.Client, ops ...clientv3.Op) {
	t.Helper()
	_, err := client.Txn(within(t, patience)).Then(ops...).Commit()
	require.NoError(t, err)
}

func TestAWatchSeesAPlainValueOverwritten(t *testing.T) {
	each(t, plain(), func(t *testing.T, options layout) {
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		name, rec := held(t, store)
		key, _ := where(options, name, rec)
		w := watching(t, store, name)
		require.Equal(t, rec, w.next().rec)
		put(t, client, key, rec.Value, clientv3.WithLease(leaseOf(t, rec)))
		o := w.next()
		require.True(t, o.rec.Foreign)
		require.Equal(t, rec.Value, o.rec.Value)
	})
}

func TestACompanionAloneIsNothing(t *testing.T) {
	each(t, plain(), func(t *testing.T, options layout) {
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		name, rec := held(t, store)
		second, heir := held(t, store)
		lead, leader := held(t, store)
		key, companion := where(options, name, rec)
		remove(t, client, key)
		require.Len(t, pair(t, client, companion).Kvs, 1)
		_, err := store.Get(within(t, patience), name)
		require.ErrorIs(t, err, kv.ErrVacant)
		require.True(t, watching(t, store, name).next().vacant())
		requireLost(t, store, name, rec)

		// Nor does it make its owner an heir.
		key, _ = where(options, second, heir)
		remove(t, client, key)
		_, err = store.Swap(within(t, patience), lead, leader, heir)
		require.ErrorIs(t, err, kv.ErrStale)

		next, err := store.Create(within(t, patience), name, signed("next"))
		require.NoError(t, err)
		got, err := store.Refresh(within(t, patience), name, next)
		require.NoError(t, err)
		require.Equal(t, next, got)
		require.Greater(t, next.Token, rec.Token)
	})
}

// While a fleet changes its setting, the two kinds take each other for somebody
// else.
func TestStoresWithAndWithoutPlainValuesExcludeEachOther(t *testing.T) {
	each(t, plain(), func(t *testing.T, options layout) {
		alone := openWith(t, nil, options, testenv.Etcd(t))
		options.Plain = false
		whole := openWith(t, nil, options, testenv.Etcd(t))
		for _, stores := range [][2]anyStore{{alone, whole}, {whole, alone}} {
			name, rec := held(t, stores[0])
			got, err := stores[1].Get(within(t, patience), name)
			require.NoError(t, err)
			require.True(t, got.Foreign)
			_, err = stores[1].Create(within(t, patience), name, signed("v"))
			require.ErrorIs(t, err, kv.ErrHeld)
			requireLost(t, stores[1], name, rec)
			require.ErrorIs(t, stores[1].Delete(within(t, patience), name, rec), kv.ErrStale)
			_, err = stores[0].Refresh(within(t, patience), name, rec)
			require.NoError(t, err)
			require.NoError(t, stores[0].Delete(within(t, patience), name, rec))
			next, err := stores[1].Create(within(t, patience), name, signed("v"))
			require.NoError(t, err)
			require.Greater(t, next.Token, rec.Token)
		}
	})
}
