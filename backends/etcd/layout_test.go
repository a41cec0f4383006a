package etcdkv_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election"
	etcdkv "github.com/electkv/election/backends/etcd"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// A layout is a way to lay safes out: that of the options, or a Queue's.
type layout struct {
	etcdkv.Options
	queue bool
}

// everyLayout returns all ways to lay safes out.
func everyLayout() []layout {
	var all []layout
	for _, l := range []layout{{}, {queue: true}, claim()} {
		plain := l
		plain.Plain = true
		all = append(all, l, plain)
	}
	return all
}

func claim() layout { return layout{Options: etcdkv.Options{Layout: etcdkv.Claim}} }

// lines returns the layouts with lines of keys.
func lines() []layout { return everyLayout()[2:] }

// queues returns the layouts in which candidates wait in line.
func queues() []layout { return everyLayout()[2:4] }

// lined reports whether a safe is a line of keys.
func (l layout) lined() bool { return l.queue || l.Layout != etcdkv.OneKey }

func (l layout) String() string {
	if l.queue {
		return "queue"
	}
	return l.Layout.String()
}

func title(l layout) string { return fmt.Sprintf("%v plain=%t", l, l.Plain) }

// anyStore is an [etcdkv.Store], or an [etcdkv.Queue].
type anyStore interface {
	kv.HandOver
	kv.Vacate
	kv.Batch
	kv.Board
	Guard(name string, rec kv.Record) []clientv3.Cmp
}

// with returns a store that uses the client.
func (l layout) with(client *clientv3.Client) anyStore {
	if l.queue {
		return etcdkv.NewQueue(client, &l.Options)
	}
	return etcdkv.New(client, &l.Options)
}

// openWith returns a store with a client of its own, with the tests' prefix.
func openWith(t testing.TB, sent *count, options layout, addrs ...string) anyStore {
	t.Helper()
	options.Prefix = prefix
	return options.with(dial(t, sent, addrs...))
}

// places returns the keys of a safe as a program reads them that knows nothing of
// elections, the first in line first.
func places(t testing.TB, client *clientv3.Client, options layout, name string) []string {
	t.Helper()
	key, opts := prefix+name, []clientv3.OpOption(nil)
	if _, _, member := kv.MemberOf(name); options.lined() && !member {
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
func putOver(t testing.TB, client *clientv3.Client, options layout, name, value string) {
	t.Helper()
	key := name
	if _, _, member := kv.MemberOf(name); options.lined() && !member {
		key += "/somebody"
		if held := places(t, client, options, name); len(held) > 0 {
			key = held[0]
		}
	}
	put(t, client, key, value)
}

// removeAll deletes a safe's keys as an operator does. Companions stay: nobody has
// told the operator of them.
func removeAll(t testing.TB, client *clientv3.Client, options layout, name string) {
	t.Helper()
	for _, key := range places(t, client, options, name) {
		remove(t, client, key)
	}
}

func TestLayoutsHaveTheNamesThatURLsHave(t *testing.T) {
	require.Equal(t, "key", etcdkv.OneKey.String())
	require.Equal(t, "claim", etcdkv.Claim.String())
	require.Equal(t, "Layout(7)", etcdkv.Layout(7).String())
}

func TestALayoutThatCannotBeIsRefusedByEveryOperation(t *testing.T) {
	for want, options := range map[string]layout{
		`layout "Layout(7)": want OneKey or Claim, or NewQueue`:                     {Options: etcdkv.Options{Layout: 7}},
		`layout "claim": a Queue has its own: leave Options.Layout out, or use New`: {Options: etcdkv.Options{Layout: etcdkv.Claim}, queue: true},
	} {
		store := openWith(t, nil, options, testenv.Etcd(t))
		_, err := election.New(store, "safe", nil)
		require.ErrorIs(t, err, kv.ErrInvalid)
		require.ErrorContains(t, err, want)
		_, err = store.Create(within(t, patience), "safe", signed("v"))
		require.ErrorIs(t, err, kv.ErrInvalid)
		require.ErrorContains(t, err, want)
		for _, err := range store.Watch(within(t, patience), "safe") {
			require.ErrorIs(t, err, kv.ErrInvalid)
		}
		if options.queue {
			_, err = store.(kv.Queue).Join(within(t, patience), "safe", signed("v"))
			require.ErrorIs(t, err, kv.ErrInvalid)
		}
	}
}

func TestOnlyAQueueKeepsLines(t *testing.T) {
	for _, options := range everyLayout() {
		store := openWith(t, nil, options, testenv.Etcd(t))
		_, lines := store.(kv.Queue)
		require.Equal(t, options.queue, lines, title(options))
		life, err := store.Lifetime(time.Minute)
		require.NoError(t, err)
		require.Equal(t, options.queue, life.Queue, title(options))
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
			store := options.with(client)
			_, err := store.Create(within(t, patience), key.name, signed("v"))
			require.ErrorIs(t, err, kv.ErrInvalid, "%s: %+v", title(options), key)
			require.ErrorContains(t, err, ".election")
			require.False(t, writesIf(t, client, store.Guard(key.name, signed("v"))))
		}
		options.Prefix, options.Suffix = prefix+signed("").Signature, "s"
		_, err := options.with(client).Create(within(t, patience), "app.election", signed("v"))
		require.NoError(t, err, "its key is another")
	}
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
	each(t, everyLayout(), func(t *testing.T, options layout) {
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
