package etcdkv_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	etcdkv "github.com/electkv/election/backends/etcd"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// meddled returns a store whose next call of the method is held back until
// *meddle has run, if that is set.
func meddled(t testing.TB, step string) (store anyStore, meddle *func()) {
	t.Helper()
	return meddledWith(t, layout{}, step)
}

func meddledWith(t testing.TB, options layout, step string) (store anyStore, meddle *func()) {
	t.Helper()
	return meddledWithAt(t, options, step, testenv.Etcd(t))
}

func meddledWithAt(t testing.TB, options layout, step, addr string) (store anyStore, meddle *func()) {
	t.Helper()
	meddle = new(func())
	client := dialWith(t, nil, clientv3.Config{
		Endpoints: []string{addr},
		DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				if strings.HasSuffix(method, step) { // of which there is one at a time
					if f := *meddle; f != nil {
						*meddle = nil
						f()
					}
				}
				return invoke(ctx, method, req, reply, cc, opts...)
			})},
	})
	options.Prefix = prefix
	return options.with(client), meddle
}

// A write is conditional on what the look before it has seen.
func TestAForeignRecordThatComesBetweenALookAndAWriteIsLeftAlone(t *testing.T) {
	client := dial(t, nil, testenv.Etcd(t))
	store, meddle := meddled(t, "/Txn")
	second, heir := held(t, store)
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
		"hand over in one step": func(name string, rec kv.Record) error {
			_, err := store.HandOver(within(t, patience), name, rec, second, heir, "")
			return err
		},
		"delete": func(name string, rec kv.Record) error { return store.Delete(within(t, patience), name, rec) },
	} {
		name, rec := held(t, store)
		*meddle = func() { put(t, client, name, "somebody") }
		require.ErrorIs(t, write(name, rec), kv.ErrStale, what)
		got, err := store.Get(within(t, patience), name)
		require.NoError(t, err)
		require.Equal(t, "somebody", got.Value, what)
		require.True(t, got.Foreign)
	}

	rec := signed("late")
	name := rec.Signature
	*meddle = func() { put(t, client, name, "somebody") }
	_, err := store.Create(within(t, patience), name, rec)
	require.ErrorIs(t, err, kv.ErrHeld)
	got, err := store.Get(within(t, patience), name)
	require.NoError(t, err)
	require.Equal(t, "somebody", got.Value)
}

func TestNothingIsHandedOverToAnHeirThatGoesAtThatMoment(t *testing.T) {
	client := dial(t, nil, testenv.Etcd(t))
	store, meddle := meddled(t, "/Txn")
	lead, leader := held(t, store)
	_, heir := held(t, store)
	*meddle = func() {
		_, err := client.Revoke(within(t, patience), leaseOf(t, heir))
		require.NoError(t, err)
	}
	_, err := store.Swap(within(t, patience), lead, leader, heir)
	require.ErrorIs(t, err, kv.ErrStale)
	got, err := store.Refresh(within(t, patience), lead, leader)
	require.NoError(t, err)
	require.Equal(t, leader, got)
}

// The heir's record goes and its lease does not, yet. To hand over to such a
// lease is to hand over to nobody.
func TestNothingIsHandedOverToALeaseWithoutARecord(t *testing.T) {
	client := dial(t, nil, testenv.Etcd(t))
	for _, step := range []string{"/Range", "/LeaseTimeToLive", "/Txn"} {
		store, meddle := meddled(t, step)
		lead, leader := held(t, store)
		second, heir := held(t, store)
		*meddle = func() { remove(t, client, second) }
		_, err := store.Swap(within(t, patience), lead, leader, heir)
		require.ErrorIs(t, err, kv.ErrStale, "removed before %s", step)
		requireAlive(t, client, heir)
		got, err := store.Refresh(within(t, patience), lead, leader)
		require.NoError(t, err)
		require.Equal(t, leader, got)
	}
}

// The heir gives up its record, and at each step of that another safe would be
// handed over to it. If it is, the record stays.
func TestAnHeirThatGivesUpTakesNoOtherRecordAlong(t *testing.T) {
	for _, step := range []string{"/LeaseGrant", "/Txn"} {
		store := open(t, nil, testenv.Etcd(t))
		leaving, meddle := meddled(t, step)
		lead, leader := held(t, store)
		second, heir := held(t, store)
		var rec kv.Record
		var err error
		*meddle = func() { rec, err = store.Swap(within(t, patience), lead, leader, heir) }
		require.NoError(t, leaving.Delete(within(t, patience), second, heir))
		require.Nil(t, *meddle, "a delete has no such step: %s", step)
		if err != nil {
			require.ErrorIs(t, err, kv.ErrStale)
			rec = leader
		}
		got, err := store.Refresh(within(t, patience), lead, rec)
		require.NoError(t, err, "after a hand-over at %s", step)
		require.Equal(t, rec, got)
	}
}

// An heir may have several records. Which of them goes meanwhile does not matter
// as long as one is left.
func TestAHandOverNeedsOneOfTheHeirsRecords(t *testing.T) {
	store, meddle := meddled(t, "/Txn")
	names := make([]string, 3)
	recs := make([]kv.Record, 3)
	names[0], recs[0] = held(t, store)
	for i := range names[1:] {
		name, rec := held(t, store)
		rec, err := store.Swap(within(t, patience), name, rec, recs[0])
		require.NoError(t, err)
		names[i+1], recs[i+1] = name, rec
	}
	lead, leader := held(t, store)
	*meddle = func() {
		for i := range 2 {
			require.NoError(t, store.Delete(within(t, patience), names[i], recs[i]))
		}
	}
	rec, err := store.Swap(within(t, patience), lead, leader, recs[0])
	require.NoError(t, err)
	got, err := store.Refresh(within(t, patience), lead, rec)
	require.NoError(t, err)
	require.Equal(t, rec, got)
}

func TestADeleteMeetsANewValueOnTheWay(t *testing.T) {
	store, meddle := meddled(t, "/Txn")
	name, rec := held(t, store)
	*meddle = func() { publish(t, store, name, rec, "published") }
	require.NoError(t, store.Delete(within(t, patience), name, rec))
	_, err := store.Get(within(t, patience), name)
	require.ErrorIs(t, err, kv.ErrVacant)
}

func TestTheTTLIsTheOneGranted(t *testing.T) {
	store := open(t, nil, testenv.Etcd(t))
	rec := signed("v")
	name := rec.Signature
	rec.TTL = 30*time.Second + time.Nanosecond
	rec, err := store.Create(within(t, patience), name, rec)
	require.NoError(t, err)
	require.Equal(t, 31*time.Second, rec.TTL)
	got, err := store.Refresh(within(t, patience), name, rec)
	require.NoError(t, err)
	require.Equal(t, rec, got)
	life, err := store.Lifetime(30*time.Second + time.Nanosecond)
	require.NoError(t, err)
	require.Equal(t, 31*time.Second, life.Min)
	require.Greater(t, life.Max, life.Min)
}

// Otherwise a server that is cut off from its peers keeps its watches, and tells
// them nothing.
func TestAWatchRequiresItsServerToHaveALeader(t *testing.T) {
	var required []string
	client := dialWith(t, nil, clientv3.Config{
		Endpoints: []string{testenv.Etcd(t)},
		DialOptions: []grpc.DialOption{grpc.WithChainStreamInterceptor(
			func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
				md, _ := metadata.FromOutgoingContext(ctx)
				required = append(required, md.Get("hasleader")...)
				return streamer(ctx, desc, cc, method, opts...)
			})},
	})
	store := etcdkv.New(client, &etcdkv.Options{Prefix: prefix})
	name, rec := held(t, store)
	w := watching(t, store, name)
	w.sees(rec)
	rec = publish(t, store, name, rec, "published")
	w.sees(rec)
	require.Equal(t, []string{"true"}, required)
}
