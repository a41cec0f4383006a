package etcdkv_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election"
	etcdkv "github.com/electkv/election/backends/etcd"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// everyLayout returns all ways to lay safes out.
func everyLayout() []etcdkv.Options {
	return []etcdkv.Options{
		{Layout: etcdkv.OneKey}, {Layout: etcdkv.OneKey, Plain: true},
		{Layout: etcdkv.Queue}, {Layout: etcdkv.Queue, Plain: true},
		{Layout: etcdkv.Claim}, {Layout: etcdkv.Claim, Plain: true},
	}
}

// lines returns the layouts with lines of keys.
func lines() []etcdkv.Options { return everyLayout()[2:] }

// queues returns the layouts in which candidates wait in line.
func queues() []etcdkv.Options { return everyLayout()[2:4] }

func title(options etcdkv.Options) string {
	return fmt.Sprintf("%v plain=%t", options.Layout, options.Plain)
}

// openWith returns a store with a client of its own, with the tests' prefix.
func openWith(t testing.TB, sent *count, options etcdkv.Options, addrs ...string) *etcdkv.Store {
	t.Helper()
	options.Prefix = prefix
	return etcdkv.New(dial(t, sent, addrs...), &options)
}

// places returns the keys of a safe as a program reads them that knows nothing of
// elections, the first in line first.
func places(t testing.TB, client *clientv3.Client, options etcdkv.Options, name string) []string {
	t.Helper()
	key, opts := prefix+name, []clientv3.OpOption(nil)
	if options.Layout != etcdkv.OneKey {
		key += "/"
		opts = append(opts, clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	}
	resp, err := client.Get(within(t, patience), key, opts...)
	require.NoError(t, err)
	var keys []string
	for _, pair := range resp.Kvs {
		keys = append(keys, strings.TrimPrefix(string(pair.Key), prefix))
	}
	return keys
}

// putOver writes as another program does that has the safe, or makes it its own.
func putOver(t testing.TB, client *clientv3.Client, options etcdkv.Options, name, value string) {
	t.Helper()
	key := name
	if options.Layout != etcdkv.OneKey {
		key += "/somebody"
		if held := places(t, client, options, name); len(held) > 0 {
			key = held[0]
		}
	}
	put(t, client, key, value)
}

// removeAll deletes a safe's keys as an operator does. Companions stay: nobody has
// told the operator of them.
func removeAll(t testing.TB, client *clientv3.Client, options etcdkv.Options, name string) {
	t.Helper()
	for _, key := range places(t, client, options, name) {
		remove(t, client, key)
	}
}

func TestLayoutsHaveTheNamesThatURLsHave(t *testing.T) {
	require.Equal(t, "key", etcdkv.OneKey.String())
	require.Equal(t, "queue", etcdkv.Queue.String())
	require.Equal(t, "claim", etcdkv.Claim.String())
	require.Equal(t, "Layout(7)", etcdkv.Layout(7).String())
}

func TestALayoutThatDoesNotExistIsRefusedByEveryOperation(t *testing.T) {
	store := openWith(t, nil, etcdkv.Options{Layout: 7}, testenv.Etcd(t))
	_, err := store.Create(within(t, patience), "safe", signed("v"))
	require.ErrorIs(t, err, kv.ErrInvalid)
	require.ErrorContains(t, err, "want OneKey, Queue or Claim")
	for _, err := range store.Watch(within(t, patience), "safe") {
		require.ErrorIs(t, err, kv.ErrInvalid)
	}
}

func TestANameWithASlashIsRefusedWhereItWouldBeInAnothersLine(t *testing.T) {
	for _, options := range lines() {
		store := openWith(t, nil, options, testenv.Etcd(t))
		for _, name := range []string{"/", "a/", "/a", "a/b"} {
			_, err := store.Create(within(t, patience), name, signed("v"))
			require.ErrorIs(t, err, kv.ErrInvalid, "%s: %q", title(options), name)
			require.ErrorContains(t, err, "Options.Prefix")
		}
	}
}

// A lease whose keys were all taken for companions would be revoked under a live
// record. What counts is the whole key, not the name alone.
func TestANameWhoseKeyCouldBeACompanionIsRefused(t *testing.T) {
	client := dial(t, nil, testenv.Etcd(t))
	for _, options := range everyLayout() {
		for _, key := range []struct{ prefix, name, suffix string }{
			{"", "app.election", ""},
			{"app.", "election", ""},
			{"app", ".election", ""},
			{"", "app", ".election"},
			{"", "app.electio", "n"},
		} {
			options.Prefix, options.Suffix = prefix+signed("").Signature+key.prefix, key.suffix
			store := etcdkv.New(client, &options)
			_, err := store.Create(within(t, patience), key.name, signed("v"))
			require.ErrorIs(t, err, kv.ErrInvalid, "%s: %+v", title(options), key)
			require.ErrorContains(t, err, ".election")
			require.False(t, writesIf(t, client, store.Guard(key.name, signed("v"))))
		}
		options.Prefix, options.Suffix = prefix+signed("").Signature, "s"
		_, err := etcdkv.New(client, &options).Create(within(t, patience), "app.election", signed("v"))
		require.NoError(t, err, "its key is another")
	}
}

func TestLayoutsWithoutLinesSaySo(t *testing.T) {
	for _, options := range everyLayout() {
		if options.Layout == etcdkv.Queue {
			continue
		}
		var sent count
		store := openWith(t, &sent, options, testenv.Etcd(t))
		name, rec := held(t, store)
		before := sent.Load()
		_, err := store.Join(within(t, patience), name, signed("v"))
		requireUnsupported(t, err)
		_, _, err = store.Stay(within(t, patience), name, rec)
		requireUnsupported(t, err)
		require.Equal(t, before, sent.Load(), "nothing was asked of the server")
	}
}

func requireUnsupported(t testing.TB, err error) {
	t.Helper()
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

func TestAStoreWithoutAClientIsRefusedAtOnce(t *testing.T) {
	store := etcdkv.New(nil, nil)
	_, err := election.New(store, "jobs", nil)
	require.ErrorIs(t, err, kv.ErrInvalid)
	require.ErrorContains(t, err, "client is nil")
	_, err = store.Get(t.Context(), "jobs")
	require.ErrorIs(t, err, kv.ErrInvalid)
}

func TestANoteCountsIntoTheSizeOfARecord(t *testing.T) {
	each(t, everyLayout(), func(t *testing.T, options etcdkv.Options) {
		store := openWith(t, nil, options, testenv.Etcd(t))
		name, rec := held(t, store)
		half := strings.Repeat("x", 600<<10)
		for _, large := range []kv.Record{rec, signed("")} {
			large.Value, large.Note = half, half
			_, err := store.Swap(within(t, patience), name, rec, large)
			require.ErrorIs(t, err, kv.ErrInvalid)
			require.ErrorContains(t, err, "with its value and note: want up to 1048576")
			large.Note = ""
			_, err = store.Swap(within(t, patience), name, rec, large)
			require.NoError(t, err)
			name, rec = held(t, store)
		}
	})
}
