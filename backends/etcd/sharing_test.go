package etcdkv_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/status"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

// refreshAll refreshes the records, which stay what they were but for what a record that
// shares may have anew, and returns them as they are now.
func refreshAll(t testing.TB, store kv.Batch, records []kv.Held) []kv.Held {
	t.Helper()
	return refreshed(t, records, kvtest.RefreshAll(t, within(t, patience), store, records))
}

func refreshed(t testing.TB, records []kv.Held, told []kvtest.Verdict) []kv.Held {
	t.Helper()
	now := slices.Clone(records)
	for i, told := range told {
		require.NoError(t, told.Err)
		now[i].Record = told.Record
		told.Record.Lease, told.Record.Revision = records[i].Record.Lease, records[i].Record.Revision
		require.GreaterOrEqual(t, told.Record.TTL, records[i].Record.TTL)
		told.Record.TTL = records[i].Record.TTL // it may be more than was left when it was created
		require.Equal(t, records[i].Record, told.Record)
	}
	return now
}

// inTime tries something that takes refreshes in time, with longer TTLs where the machine was too
// busy for that.
func inTime(t *testing.T, try func(ttl time.Duration) bool) {
	t.Helper()
	for ttl := 2 * time.Second; !try(ttl); ttl *= 2 {
		require.Less(t, ttl, 20*time.Second, "this machine is too busy to refresh anything before it fades")
	}
}

// A beat knows whether records were refreshed in time.
type beat struct {
	ttl  time.Duration
	last time.Time // when the last refresh began
}

func beats(ttl time.Duration) *beat { return &beat{ttl, time.Now()} }

// goes does a refresh, and reports whether it was in time.
func (b *beat) goes(refresh func()) bool {
	began := time.Now()
	refresh()
	if b.late() {
		return false
	}
	b.last = began
	return true
}

// late reports whether the records may have faded.
func (b *beat) late() bool { return time.Since(b.last) >= b.ttl }

// refreshAll refreshes records for as long as that is in time; else it returns nil.
func (b *beat) refreshAll(t testing.TB, store kv.Batch, records []kv.Held) []kv.Held {
	t.Helper()
	var told []kvtest.Verdict
	if !b.goes(func() { told = kvtest.RefreshAll(t, within(t, patience), store, records) }) {
		return nil
	}
	return refreshed(t, records, told)
}

// mayShare lets records share leases.
func mayShare(records []kv.Held) []kv.Held {
	for i := range records {
		records[i].Share = true
	}
	return records
}

// shortLived puts records into new safes that may share leases, and fade soon.
func shortLived(t testing.TB, store kv.Store, ttl time.Duration, n int) []kv.Held {
	t.Helper()
	records := make([]kv.Held, n)
	for i := range records {
		rec := signed("held")
		rec.TTL = ttl
		name := rec.Signature
		rec, err := store.Create(within(t, patience), name, rec)
		require.NoError(t, err)
		records[i] = kv.Held{Name: name, Record: rec}
	}
	return mayShare(records)
}

// sharing puts records into new safes that share leases.
func sharing(t testing.TB, store anyStore, n int) []kv.Held {
	t.Helper()
	records := mayShare(heldMany(t, store, n))
	for range 2 + n/500 { // a lease, and the records that it takes
		records = refreshAll(t, store, records)
	}
	return records
}

// leasesOf returns how many records each lease has.
func leasesOf(records []kv.Held) map[string]int {
	count := make(map[string]int)
	for _, r := range records {
		count[r.Record.Lease]++
	}
	return count
}

// stands requires that the safes hold the records.
func stands(t testing.TB, store kv.Store, records ...kv.Held) {
	t.Helper()
	for _, r := range records {
		got, err := store.Get(within(t, patience), r.Name)
		require.NoError(t, err)
		require.LessOrEqual(t, got.TTL, r.Record.TTL)
		got.TTL = r.Record.TTL // a refresh may have granted more than was left when it was created
		require.Equal(t, r.Record, got)
	}
}

func requireVacant(t testing.TB, store kv.Store, name string) {
	t.Helper()
	_, err := store.Get(within(t, patience), name)
	require.ErrorIs(t, err, kv.ErrVacant)
}

func TestRecordsComeToShareALease(t *testing.T) {
	store, w := wiredTo(t, layout{}, testenv.Etcd(t))
	records := sharing(t, store, 600)
	count := leasesOf(records)
	require.Len(t, count, 2, "of 500 records each at most")
	for _, n := range count {
		require.Contains(t, []int{100, 500}, n)
	}
	stands(t, store, records[0], records[300], records[599])

	// The state in which nothing changes any more.
	w.reset()
	requireRefreshed(t, records, kvtest.RefreshAll(t, within(t, patience), store, records))
	require.LessOrEqual(t, w.renewals, 6, "one for each lease of a share")
	require.Len(t, w.txns, 5)
}

func TestRecordsThatMayNotShareKeepTheirLeases(t *testing.T) {
	each(t, everyLayout(), func(t *testing.T, options layout) {
		store := openWith(t, nil, options, testenv.Etcd(t))
		records := heldMany(t, store, 3)
		if options.Plain || options.lined() {
			mayShare(records)
		}
		for range 3 {
			requireRefreshed(t, records, kvtest.RefreshAll(t, within(t, patience), store, records))
		}
	})
}

// No request is larger than a server takes.
func TestLargeRecordsMoveToo(t *testing.T) {
	store, w := wiredTo(t, layout{}, testenv.Etcd(t))
	records := mayShare(heldMany(t, store, 5))
	for i, r := range records[:4] {
		records[i].Record = publish(t, store, r.Name, r.Record, strings.Repeat("<", 60<<10)) // six bytes each in the text
	}
	records = refreshAll(t, store, records)
	w.reset()
	records = refreshAll(t, store, records)
	require.Len(t, leasesOf(records), 1, "all have moved")
	require.Len(t, w.txns, 4)
}

// All that a leader does goes on as before, and with what it knew before the move.
func TestARecordThatSharesIsUsedLikeAnyOther(t *testing.T) {
	client, store := dial(t, nil, testenv.Etcd(t)), open(t, nil, testenv.Etcd(t))
	before := mayShare(heldMany(t, store, 6))
	now := before
	for range 3 {
		now = refreshAll(t, store, now)
	}
	require.Len(t, leasesOf(now), 1)
	for i := range now {
		require.NotEqual(t, before[i].Record.Lease, now[i].Record.Lease)
		require.True(t, writes(t, client, store, now[i].Name, before[i].Record), "the guard from before the move")
		require.True(t, writes(t, client, store, now[i].Name, now[i].Record))
	}

	// A caller that was not told of the move.
	got, err := store.Refresh(within(t, patience), before[0].Name, before[0].Record)
	require.NoError(t, err)
	require.Equal(t, now[0].Record, got)
	requireRefreshed(t, now[:2], kvtest.RefreshAll(t, within(t, patience), store, before[:2]))
	require.NoError(t, store.Delete(within(t, patience), before[0].Name, before[0].Record))
	requireVacant(t, store, before[0].Name)

	now[1].Record = publish(t, store, now[1].Name, now[1].Record, "published")
	require.NoError(t, store.Delete(within(t, patience), now[2].Name, now[2].Record))
	requireVacant(t, store, now[2].Name)
	next, err := store.Swap(within(t, patience), now[3].Name, now[3].Record, signed("next"))
	require.NoError(t, err)
	require.False(t, writes(t, client, store, now[3].Name, now[3].Record))
	place, heir := held(t, store)
	handed, err := store.HandOver(within(t, patience), now[4].Name, now[4].Record, place, heir, "")
	require.NoError(t, err)
	require.Equal(t, heir.Lease, handed.Lease)
	stands(t, store, now[1], kv.Held{Name: now[3].Name, Record: next}, kv.Held{Name: now[4].Name, Record: handed}, now[5])

	// Those that are left share on, and those that came do so anew.
	again := mayShare([]kv.Held{{Name: now[3].Name, Record: next}, {Name: now[4].Name, Record: handed}, now[1], now[5]})
	for range 2 {
		again = refreshAll(t, store, again)
	}
	require.Len(t, leasesOf(again), 1)
	require.Equal(t, now[5], again[3])
	stands(t, store, again...)
}

// The next refresh finds out, and the one after that goes together with others again.
func TestAMoveWhoseAnswerIsLostIsFound(t *testing.T) {
	for what, c := range map[string]struct {
		carriedOut bool
		publish    bool // by the owner, who knows no better
	}{
		"carried out":                   {true, false},
		"carried out, and published to": {true, true},
		"lost":                          {false, false},
		"lost, and published to":        {false, true},
	} {
		t.Run(what, func(t *testing.T) {
			store, w := wiredTo(t, layout{}, testenv.Etcd(t))
			other := open(t, nil, testenv.Etcd(t))
			records := refreshAll(t, store, mayShare(heldMany(t, store, 3)))
			w.answer = func(txn *pb.TxnRequest, send func() error) error {
				w.answer = nil
				if c.carriedOut {
					require.NoError(t, send())
				}
				return rpctypes.ErrGRPCTimeout
			}
			for _, told := range kvtest.RefreshAll(t, within(t, patience), store, records) {
				requireOpen(t, what, told.Err)
			}
			if c.publish {
				name, rec := records[0].Name, records[0].Record
				now, err := other.Get(within(t, patience), name)
				require.NoError(t, err)
				require.True(t, now.Owns(rec))
				publish(t, other, name, now, rec.Value) // what it had, so that nothing else changes
			}
			for i, r := range records {
				got, err := store.Refresh(within(t, patience), r.Name, r.Record)
				require.NoError(t, err)
				require.Equal(t, c.carriedOut, got.Lease != r.Record.Lease)
				require.True(t, got.Owns(r.Record))
				stands(t, store, kv.Held{Name: r.Name, Record: got})
				records[i].Record = got
			}
			records = refreshAll(t, store, records)
			require.Len(t, leasesOf(records), 1)
			stands(t, store, records...)
		})
	}
}

// losesMove has a move of one record lost, or so it seems, and returns what carries it out
// late.
func losesMove(t testing.TB, store anyStore, w *wire) (r kv.Held, late func() error) {
	t.Helper()
	records := refreshAll(t, store, mayShare(heldMany(t, store, 1)))
	w.answer = func(_ *pb.TxnRequest, send func() error) error {
		late, w.answer = send, nil
		return rpctypes.ErrGRPCTimeout
	}
	requireOpen(t, "move", kvtest.RefreshAll(t, within(t, patience), store, records)[0].Err)
	return records[0], late
}

// After that the record is known to have moved, or never moves.
func TestAMoveThatComesLateIsOutrun(t *testing.T) {
	for what, write := range map[string]func(testing.TB, anyStore, kv.Held) kv.Record{
		"by another": func(t testing.TB, store anyStore, r kv.Held) kv.Record {
			return refreshAll(t, store, []kv.Held{r})[0].Record
		},
		"by what is published": func(t testing.TB, store anyStore, r kv.Held) kv.Record {
			return publish(t, store, r.Name, r.Record, "published")
		},
	} {
		t.Run(what, func(t *testing.T) {
			store, w := wiredTo(t, layout{}, testenv.Etcd(t))
			r, late := losesMove(t, store, w)
			r.Record = write(t, store, r)
			require.NoError(t, late())
			stands(t, store, r)
			now := []kv.Held{r}
			for range 2 { // what is not known is found out, and then it moves
				now = refreshAll(t, store, now)
				stands(t, store, now...)
			}
			requireRefreshed(t, now, kvtest.RefreshAll(t, within(t, patience), store, now))
		})
	}
}

// What was published has outrun the first move, and not the second.
func TestAMoveThatIsTriedAgainAfterAPublicationIsOpenUntilItsAnswerIsThere(t *testing.T) {
	store, w := wiredTo(t, layout{}, testenv.Etcd(t))
	r, _ := losesMove(t, store, w)
	r.Record = publish(t, store, r.Name, r.Record, "published")
	var late func() error
	w.answer = func(req *pb.TxnRequest, send func() error) error {
		if len(req.Success) < 2 { // it moves nothing
			return send()
		}
		late, w.answer = send, nil
		return rpctypes.ErrGRPCTimeout
	}
	for range 3 { // what is not known is found out, and then it moves
		if late == nil {
			kvtest.RefreshAll(t, within(t, patience), store, []kv.Held{r})
		}
	}
	require.NotNil(t, late)
	got, err := store.Refresh(within(t, patience), r.Name, r.Record)
	require.NoError(t, err)
	require.Equal(t, r.Record, got)
	require.NoError(t, late())
	got, err = store.Refresh(within(t, patience), r.Name, r.Record)
	require.NoError(t, err)
	require.True(t, got.Owns(r.Record))
	require.NotEqual(t, r.Record.Lease, got.Lease)
	stands(t, store, kv.Held{Name: r.Name, Record: got})
}

// The record may come to depend on the other lease at any time, and is trusted from now on.
func TestBothLeasesAreKeptAliveWhileAMoveMayComeLate(t *testing.T) {
	const slept = 3 * time.Second
	store, w := wiredTo(t, layout{}, testenv.Etcd(t))
	client := dial(t, nil, testenv.Etcd(t))
	r, late := losesMove(t, store, w)
	time.Sleep(slept)
	began := time.Now()
	got, err := store.Refresh(within(t, patience), r.Name, r.Record)
	require.NoError(t, err)
	require.Equal(t, r.Record, got)
	require.NoError(t, late())
	now, err := store.Get(within(t, patience), r.Name)
	require.NoError(t, err)
	require.NotEqual(t, r.Record.Lease, now.Lease)
	lives, err := client.TimeToLive(within(t, patience), leaseOf(t, now))
	require.NoError(t, err)
	left := time.Duration(lives.TTL+1) * time.Second // at most: the server tells whole seconds
	require.GreaterOrEqual(t, left, now.TTL-time.Since(began))
	got, err = store.Refresh(within(t, patience), r.Name, r.Record)
	require.NoError(t, err)
	require.Equal(t, now, got)
}

func TestAMoveToALeaseThatIsDeniedIsOutrunFirst(t *testing.T) {
	for what, refresh := range map[string]func(testing.TB, anyStore, kv.Held) kv.Record{
		"by a refresh": func(t testing.TB, store anyStore, r kv.Held) kv.Record {
			got, err := store.Refresh(within(t, patience), r.Name, r.Record)
			require.NoError(t, err)
			return got
		},
		"by a batch": func(t testing.TB, store anyStore, r kv.Held) kv.Record {
			return refreshAll(t, store, []kv.Held{r})[0].Record
		},
	} {
		t.Run(what, func(t *testing.T) {
			store, w := wiredTo(t, layout{}, testenv.Etcd(t))
			r, late := losesMove(t, store, w)
			w.answered = func(_ context.Context, _ int, resp *pb.LeaseKeepAliveResponse) (bool, error) {
				if resp.ID != int64(leaseOf(t, r.Record)) {
					resp.TTL = 0 // as a new leader says that has not caught up
				}
				return true, nil
			}
			got := refresh(t, store, r)
			require.Equal(t, r.Record.Lease, got.Lease)
			require.NotEqual(t, r.Record.Revision, got.Revision)
			require.NoError(t, late())
			stands(t, store, kv.Held{Name: r.Name, Record: got})
		})
	}
}

// The same holds for a record that leaves a closed lease.
func TestAMoveFromAClosedLeaseToOneThatIsDeniedIsOutrunFirst(t *testing.T) {
	inTime(t, func(ttl time.Duration) bool { return aMoveFromAClosedLeaseIsOutrun(t, ttl) })
}

func aMoveFromAClosedLeaseIsOutrun(t *testing.T, ttl time.Duration) bool {
	store, w := wiredTo(t, layout{}, testenv.Etcd(t))
	b := beats(ttl)
	records := shortLived(t, store, ttl, 2)
	for range 2 {
		if records = b.refreshAll(t, store, records); records == nil {
			return false
		}
	}
	require.Len(t, leasesOf(records), 1)
	kept := records[1:] // the other one is left behind
	var late func() error
	w.answer = func(req *pb.TxnRequest, send func() error) error {
		if len(req.Success) < 2 || late != nil { // it moves nothing
			return send()
		}
		late = send
		return rpctypes.ErrGRPCTimeout
	}
	for began := time.Now(); late == nil; time.Sleep(ttl / 20) {
		require.Less(t, time.Since(began), 3*ttl+patience)
		var told []kvtest.Verdict
		if !b.goes(func() { told = kvtest.RefreshAll(t, within(t, patience), store, kept) }) {
			return false
		}
		if late == nil {
			require.NoError(t, told[0].Err)
			require.Equal(t, kept[0].Record, told[0].Record)
		}
	}
	w.answered = func(_ context.Context, _ int, resp *pb.LeaseKeepAliveResponse) (bool, error) {
		if resp.ID != int64(leaseOf(t, kept[0].Record)) {
			resp.TTL = 0
		}
		return true, nil
	}
	got, err := store.Refresh(within(t, patience), kept[0].Name, kept[0].Record)
	comes := late()
	now, read := store.Get(within(t, patience), kept[0].Name)
	if b.late() {
		return false
	}
	require.NoError(t, err)
	require.NotEqual(t, kept[0].Record.Revision, got.Revision)
	require.NoError(t, comes)
	require.NoError(t, read)
	now.TTL = got.TTL
	require.Equal(t, got, now)
	return true
}

// It takes no more writes, say. What can be refreshed without one is.
func TestAServerThatRefusesToMoveRecordsIsNotAskedAgain(t *testing.T) {
	store, w := wiredTo(t, layout{}, testenv.Etcd(t))
	records := refreshAll(t, store, mayShare(heldMany(t, store, 3)))
	writes := 0
	w.sent = func(req *pb.TxnRequest) error {
		for _, op := range req.Success {
			if op.GetRequestPut() != nil {
				writes++
				return rpctypes.ErrGRPCNoSpace
			}
		}
		return nil
	}
	for range 5 {
		requireRefreshed(t, records, kvtest.RefreshAll(t, within(t, patience), store, records))
	}
	require.LessOrEqual(t, writes, 1+5*3)
	w.sent = nil
	for range 2 { // what may have moved is settled
		records = refreshAll(t, store, records)
	}
	w.reset()
	requireRefreshed(t, records, kvtest.RefreshAll(t, within(t, patience), store, records))
	require.Len(t, w.txns, 1)
}

// The client does so by itself after some errors.
func TestAMoveThatIsSentTwiceIsFound(t *testing.T) {
	store, w := wiredTo(t, layout{}, testenv.Etcd(t))
	records := refreshAll(t, store, mayShare(heldMany(t, store, 3)))
	w.answer = func(_ *pb.TxnRequest, send func() error) error {
		w.answer = nil
		require.NoError(t, send())
		return send()
	}
	now := refreshAll(t, store, records)
	require.Len(t, leasesOf(now), 1)
	require.NotEqual(t, records[0].Record.Lease, now[0].Record.Lease)
	stands(t, store, now...)
	requireRefreshed(t, now, kvtest.RefreshAll(t, within(t, patience), store, now))
}

// Nobody keeps it alive any more, and its neighbours would.
func TestARecordThatWasLeftBehindFadesAlthoughOthersLive(t *testing.T) {
	// Each returns the records as they are now, or nothing if it was too slow.
	for what, leave := range map[string]func(t testing.TB, b *beat, store anyStore, w *wire, records []kv.Held) []kv.Held{
		"once it shared": func(t testing.TB, b *beat, store anyStore, _ *wire, records []kv.Held) []kv.Held {
			return b.refreshAll(t, store, records)
		},
		"when nobody knew": func(t testing.TB, b *beat, store anyStore, w *wire, records []kv.Held) []kv.Held {
			w.answer = func(_ *pb.TxnRequest, send func() error) error {
				w.answer = nil
				require.NoError(t, send())
				return rpctypes.ErrGRPCTimeout
			}
			kvtest.RefreshAll(t, within(t, patience), store, records)
			var errs []error
			if !b.goes(func() {
				for i, r := range records[1:] {
					got, err := store.Refresh(within(t, patience), r.Name, r.Record)
					records[i+1].Record = got
					errs = append(errs, err)
				}
			}) {
				return nil
			}
			require.NoError(t, errors.Join(errs...))
			return records
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel() // mostly it waits
			inTime(t, func(ttl time.Duration) bool {
				store, w := wiredTo(t, layout{}, testenv.Etcd(t))
				other := open(t, nil, testenv.Etcd(t))
				b := beats(ttl)
				records := b.refreshAll(t, store, shortLived(t, store, ttl, 3))
				if records == nil {
					return false
				}
				life, err := store.Lifetime(ttl)
				require.NoError(t, err)
				left := time.Now()
				if records = leave(t, b, store, w, records); records == nil {
					return false
				}
				gone, others := records[0], records[1:]
				for {
					_, err := other.Get(within(t, patience), gone.Name)
					if err != nil {
						require.ErrorIs(t, err, kv.ErrVacant)
						break
					}
					require.Less(t, time.Since(left), 3*life.Max+patience)
					time.Sleep(ttl / 10)
					if others = b.refreshAll(t, store, others); others == nil {
						return false
					}
				}
				require.GreaterOrEqual(t, time.Since(left), ttl)
				require.Len(t, leasesOf(others), 1)
				return b.refreshAll(t, store, others) != nil
			})
		})
	}
}

// As one is whose term has ended and whose work goes on.
func TestARecordThatIsRefreshedSinglyLeavesALeaseThatIsClosed(t *testing.T) {
	t.Parallel() // it mostly waits
	inTime(t, func(ttl time.Duration) bool {
		store, other := open(t, nil, testenv.Etcd(t)), open(t, nil, testenv.Etcd(t))
		b := beats(ttl)
		records := shortLived(t, store, ttl, 2)
		for range 2 {
			if records = b.refreshAll(t, store, records); records == nil {
				return false
			}
		}
		require.Len(t, leasesOf(records), 1)
		left, kept := records[0], records[1]
		for began := time.Now(); ; time.Sleep(ttl / 10) {
			var rec kv.Record
			var err error
			if !b.goes(func() { rec, err = store.Refresh(within(t, patience), kept.Name, kept.Record) }) {
				return false
			}
			require.NoError(t, err)
			kept.Record = rec
			if _, err := other.Get(within(t, patience), left.Name); err != nil {
				require.ErrorIs(t, err, kv.ErrVacant)
				break
			}
			require.Less(t, time.Since(began), 6*ttl+patience)
		}
		if b.late() {
			return false
		}
		require.NotEqual(t, left.Record.Lease, kept.Record.Lease)
		return b.refreshAll(t, store, []kv.Held{kept}) != nil
	})
}

// And others, which do not share it, know nothing of it.
func TestASharedLeaseThatIsRevokedTakesItsRecordsAlong(t *testing.T) {
	store, client := open(t, nil, testenv.Etcd(t)), dial(t, nil, testenv.Etcd(t))
	records, beside := sharing(t, store, 500), sharing(t, store, 3)
	require.Len(t, leasesOf(records), 1)
	require.NotEqual(t, records[0].Record.Lease, beside[0].Record.Lease)
	_, err := client.Revoke(within(t, patience), leaseOf(t, records[0].Record))
	require.NoError(t, err)
	for i, told := range kvtest.RefreshAll(t, within(t, patience), store, slices.Concat(records, beside)) {
		if i < len(records) {
			require.ErrorIs(t, told.Err, kv.ErrStale)
			continue
		}
		require.NoError(t, told.Err)
		require.Equal(t, beside[i-len(records)].Record, told.Record)
	}
	require.Len(t, leasesOf(sharing(t, store, 5)), 1)
}

// It was granted, and nothing came to it before it faded.
func TestALeaseThatHasEndedGetsNoRecords(t *testing.T) {
	for what, revoke := range map[string]func(t testing.TB, client *clientv3.Client, w *wire, id clientv3.LeaseID){
		"before": func(t testing.TB, client *clientv3.Client, _ *wire, id clientv3.LeaseID) {
			_, err := client.Revoke(within(t, patience), id)
			require.NoError(t, err)
		},
		"after its keep-alive": func(t testing.TB, client *clientv3.Client, w *wire, id clientv3.LeaseID) {
			w.sent = func(*pb.TxnRequest) error {
				w.sent = nil
				_, err := client.Revoke(within(t, patience), id)
				return err
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			store, w := wiredTo(t, layout{}, testenv.Etcd(t))
			client := dial(t, nil, testenv.Etcd(t))
			first := sharing(t, store, 1)
			shared := leaseOf(t, first[0].Record)
			require.NoError(t, store.Delete(within(t, patience), first[0].Name, first[0].Record))
			records := mayShare(heldMany(t, store, 3))
			revoke(t, client, w, shared)
			for range 4 {
				records = refreshAll(t, store, records)
			}
			require.Len(t, leasesOf(records), 1)
			stands(t, store, records...)
		})
	}
}

func TestAGrantThatHangsHoldsUpNoRefresh(t *testing.T) {
	t.Parallel() // it mostly waits
	store, w := wiredTo(t, layout{}, testenv.Etcd(t))
	records := mayShare(heldMany(t, store, 3))
	w.granting = func(ctx context.Context) error {
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	}
	began := time.Now()
	requireRefreshed(t, records, kvtest.RefreshAll(t, within(t, patience), store, records))
	require.Less(t, time.Since(began), patience)
}
