package kvtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

const (
	refreshesEach = "RefreshAll does for each of the records what Refresh does, and reports what Refresh would return for it."
	ownVerdict    = "Each record has a result of its own: neither the success nor the failure of one says anything about another."
	toldOnce      = "RefreshAll calls tell once for each record, with its index, as soon as its result is known, and returns after the last of these calls."
	batchEnds     = "When ctx ends, RefreshAll reports for each record without a result an error that reports the context's error or cause, and returns promptly."
	mayShare      = "Share lets the store back the record by a lease that also backs other records of this process. Then the record that RefreshAll reports has another Lease and Revision than before. All else stays as it was, and the TTL is no shorter. A caller that has the earlier record can still refresh and delete it."
	leftBehind    = "If its owner neither refreshes nor deletes it, while other records of the process are refreshed, it may live for up to three times Lifetime.Max."
	fewRequests   = "A Batch refreshes many records at once. Where it can, it sends fewer requests than one per record. It never sends more."
)

// The cases of a kv.Batch. A store that is none skips them.
var batchCases = []Case{
	{Name: "a batch refreshes each record", Clause: refreshesEach + " " + toldOnce, check: batched(aBatchRefreshesEachRecord)},
	{Name: "a batch starts each TTL anew", Clause: refreshesEach + " Refresh starts the TTL of the caller's record anew.", check: batched(aBatchStartsEachTTLAnew)},
	{Name: "a batch changes nothing that a reader sees", Clause: refreshesEach + " Refresh changes neither value nor token nor revision.", check: batched(aBatchChangesNothingThatAReaderSees)},
	{Name: "a batch returns what was published since", Clause: refreshesEach + " Refresh returns the record as it stands in the safe.", check: batched(aBatchReturnsWhatWasPublishedSince)},
	{Name: "a batch has a verdict for each record", Clause: ownVerdict + " " + refreshProves + " " + neverBack, check: batched(aBatchHasAVerdictForEachRecord)},
	{Name: "a batch tells of each record that was removed, wherever it is", Clause: ownVerdict + " " + refreshProves, check: batched(aBatchTellsOfEachRecordThatWasRemoved), needs: remove},
	{Name: "a record that may share is the same record as before", Clause: mayShare, check: batched(aRecordThatMayShareIsTheSame)},
	{Name: "a record that may share and was left behind fades", Clause: leftBehind, check: batched(aRecordThatWasLeftBehindFades)},
	{Name: "a batch of nothing returns", Clause: toldOnce, check: batched(aBatchOfNothingReturns)},
	{Name: "a batch whose context has ended refreshes nothing and says so", Clause: batchEnds, check: batched(aBatchWhoseContextHasEndedSaysSo)},
	{Name: "batches side by side tell each its own", Clause: toldOnce + " " + ownVerdict, check: batched(batchesSideBySideTellEachItsOwn)},
	{Name: "a batch costs no more requests than its records one by one", Clause: fewRequests, check: batched(aBatchCostsNoMoreRequests), alone: true},
	{Name: "batches leave no goroutines behind", Clause: toldOnce, check: batched(batchesLeaveNoGoroutinesBehind), alone: true},
}

// batched makes a check of one that needs a store which refreshes many records at once.
func batched(check func(*trial, kv.Batch)) func(*trial) {
	return func(t *trial) {
		b, ok := t.s.(kv.Batch)
		if !ok {
			t.Skip("the store refreshes records one by one")
		}
		check(t, b)
	}
}

// manyRecords is more than one request of any store is expected to have room for.
const manyRecords = 130

// many creates records that outlast the case.
func (t *trial) many(n int) []kv.Held {
	t.Helper()
	return t.manyOf(n, func(i int) kv.Record { return t.signed(fmt.Sprint("value ", i)) })
}

// manyOf creates n records, a few at a time.
func (t *trial) manyOf(n int, rec func(i int) kv.Record) []kv.Held {
	t.Helper()
	records, errs := make([]kv.Held, n), make([]error, n)
	seats := make(chan struct{}, abreast)
	var crowd sync.WaitGroup
	for i := range records {
		records[i].Name = t.name()
		seats <- struct{}{}
		crowd.Go(func() {
			defer func() { <-seats }()
			records[i].Record, errs[i] = t.s.Create(t.ctx, records[i].Name, rec(i))
		})
	}
	crowd.Wait()
	require.NoError(t, errors.Join(errs...))
	return records
}

// holdsAll requires that each safe holds its record.
func (t *trial) holdsAll(records []kv.Held) {
	t.Helper()
	for _, r := range records {
		t.holds(r.Name, r.Record)
	}
}

// refreshed requires that each record was refreshed and stands as it was.
func (t *trial) refreshed(records []kv.Held, told []Verdict) {
	t.Helper()
	for i, v := range told {
		require.NoError(t, v.Err, "record %d, %.80q", i, records[i].Name)
		require.GreaterOrEqual(t, v.Record.TTL, records[i].Record.TTL, "the TTL that was granted")
		v.Record.TTL = records[i].Record.TTL
		require.Equal(t, records[i].Record, v.Record, "record %d, %.80q", i, records[i].Name)
	}
}

func aBatchRefreshesEachRecord(t *trial, b kv.Batch) {
	for _, n := range []int{1, 2, manyRecords} {
		records := t.many(n)
		t.refreshed(records, RefreshAll(t, t.ctx, b, records))
		t.holdsAll(records[:min(n, 10)])
	}
}

func aBatchStartsEachTTLAnew(t *trial, b kv.Batch) {
	t.patiently(func() bool { return t.batchStartsEachTTLAnew(b) })
}

// batchStartsEachTTLAnew reports whether the records were refreshed in time.
func (t *trial) batchStartsEachTTLAnew(b kv.Batch) bool {
	const n = 5
	created := time.Now()
	records := t.manyOf(n, func(int) kv.Record { return t.mortal("v") })
	time.Sleep(t.ttl / 2)
	start := time.Now()
	told := RefreshAll(t, t.ctx, b, records)
	if time.Since(created) >= t.ttl {
		return false
	}
	t.refreshed(records, told)
	var crowd sync.WaitGroup
	for _, r := range records {
		crowd.Go(func() { t.lives(r, start) })
	}
	crowd.Wait()
	return true
}

// lives requires that a record does not fade before its TTL has passed since start, but
// soon after. It is for goroutines of a case.
func (t *trial) lives(r kv.Held, start time.Time) {
	life, err := t.s.Lifetime(r.Record.TTL)
	for deadline := time.Now().Add(life.Max + patience); err == nil && time.Now().Before(deadline); time.Sleep(t.ttl / 20) {
		_, err = t.s.Get(t.ctx, r.Name)
		if errors.Is(err, kv.ErrVacant) {
			if time.Now().Before(earliest(start, r.Record.TTL)) {
				t.Errorf("%.80q faded %v after it was refreshed, before its TTL of %v", r.Name, time.Since(start), r.Record.TTL)
			}
			return
		}
	}
	t.Errorf("%.80q has not faded %v after it was refreshed; its TTL was %v (%v)", r.Name, time.Since(start), r.Record.TTL, err)
}

func aBatchChangesNothingThatAReaderSees(t *trial, b kv.Batch) {
	records := t.many(3)
	w := t.watch(t.open(), records[0].Name)
	w.sees(records[0].Record)
	for range 5 {
		t.refreshed(records, RefreshAll(t, t.ctx, b, records))
		t.holdsAll(records)
	}
	w.staysQuiet(t.ttl / 5)
}

func aBatchReturnsWhatWasPublishedSince(t *trial, b kv.Batch) {
	records := t.many(5)
	now := append([]kv.Held(nil), records...)
	for _, i := range []int{1, 4} {
		now[i].Record = t.publish(t.open(), records[i].Name, records[i].Record, "published since")
	}
	t.refreshed(now, RefreshAll(t, t.ctx, b, records))
	t.holdsAll(now)
}

// share refreshes records that may share a lease as often as it takes until they do, if the
// store has it so.
func (t *trial) share(b kv.Batch, records []kv.Held) {
	t.Helper()
	for range 3 {
		t.moved(records, RefreshAll(t, t.ctx, b, mayShareAll(records)))
	}
}

// mayShareAll lets the records share a lease.
func mayShareAll(records []kv.Held) []kv.Held {
	for i := range records {
		records[i].Share = true
	}
	return records
}

// moved requires that each record was refreshed and stands as it was, but for its lease
// and its revision, which it takes in.
func (t *trial) moved(records []kv.Held, told []Verdict) {
	t.Helper()
	for i, v := range told {
		if v.Err == nil {
			records[i].Record.Lease, records[i].Record.Revision = v.Record.Lease, v.Record.Revision
		}
	}
	t.refreshed(records, told)
}

// All that an owner does works as before, even if it does not know of the new lease.
func aRecordThatMayShareIsTheSame(t *trial, b kv.Batch) {
	before := t.many(5)
	now := append([]kv.Held(nil), before...)
	t.share(b, now)
	t.holdsAll(now)
	got, err := t.s.Refresh(t.ctx, before[0].Name, before[0].Record)
	require.NoError(t, err)
	require.Equal(t, now[0].Record.Revision, got.Revision)
	t.delete(t.s, before[0].Name, before[0].Record)
	t.vacant(before[0].Name)
	now[1].Record = t.publish(t.s, now[1].Name, now[1].Record, "published")
	t.delete(t.s, now[2].Name, now[2].Record)
	now[2].Record = t.succeed(t.s, now[2].Name, t.signed("again"))
	now[3].Record = t.swap(t.s, now[3].Name, now[3].Record, t.signed("the next"))
	now = now[1:]
	t.holdsAll(now)
	t.share(b, now)
	t.holdsAll(now)
}

func aRecordThatWasLeftBehindFades(t *trial, b kv.Batch) {
	t.patiently(func() bool { return t.fadesBesideOthers(b) })
}

// fadesBesideOthers reports whether the others were refreshed in time.
func (t *trial) fadesBesideOthers(b kv.Batch) bool {
	t.Helper()
	last := time.Now()
	records := mayShareAll(t.manyOf(3, func(int) kv.Record { return t.mortal("v") }))
	refresh := func(records []kv.Held) bool {
		began := time.Now()
		told := RefreshAll(t, t.ctx, b, records)
		if time.Since(last) >= t.ttl {
			return false
		}
		last = began
		t.moved(records, told)
		return true
	}
	for range 3 {
		if !refresh(records) {
			return false
		}
	}
	left, others := last, records[1:]
	for {
		_, err := t.s.Get(t.ctx, records[0].Name)
		if errors.Is(err, kv.ErrVacant) {
			break
		}
		require.NoError(t, err)
		require.Less(t, time.Since(left), 3*t.lifetime(t.ttl).Max+patience, "since it was refreshed last")
		time.Sleep(t.ttl / 20)
		if !refresh(others) {
			return false
		}
	}
	return refresh(others)
}

// aBatchHasAVerdictForEachRecord mixes records that are held with all that may have become
// of one, each beside neighbours of either kind.
func aBatchHasAVerdictForEachRecord(t *trial, b kv.Batch) {
	records := t.many(16)
	fate := make([]error, len(records)) // nil for those that are held
	for i := range records {
		r := &records[i]
		switch i % 8 {
		case 1: // released
			t.delete(t.s, r.Name, r.Record)
			fate[i] = kv.ErrStale
		case 2: // another's by now
			t.delete(t.s, r.Name, r.Record)
			t.succeed(t.open(), r.Name, t.signed("the next"))
			fate[i] = kv.ErrStale
		case 3: // handed over
			t.swap(t.s, r.Name, r.Record, t.signed("handed over"))
			fate[i] = kv.ErrStale
		case 4: // of an earlier stretch of ownership
			t.delete(t.s, r.Name, r.Record)
			t.succeed(t.s, r.Name, r.Record)
			fate[i] = kv.ErrStale
		case 5: // of another safe
			r.Record = records[i-5].Record
			fate[i] = kv.ErrStale
		case 6: // nowhere
			r.Name = ""
			fate[i] = kv.ErrInvalid
		}
	}
	before := make([]Verdict, len(records))
	for i, r := range records {
		before[i].Record, before[i].Err = t.s.Get(t.ctx, r.Name)
	}
	for i, v := range RefreshAll(t, t.ctx, b, records) {
		if fate[i] != nil {
			require.ErrorIs(t, v.Err, fate[i], "record %d", i)
			require.Zero(t, v.Record, "what comes with an error")
			continue
		}
		require.NoError(t, v.Err, "record %d", i)
		require.True(t, v.Record.Owns(records[i].Record), "record %d: %s", i, describe(v.Record))
	}
	for i, r := range records {
		rec, err := t.s.Get(t.ctx, r.Name)
		require.Equal(t, before[i].Record, rec, "what the safe of record %d held before and after", i)
		require.Equal(t, before[i].Err == nil, err == nil, "%v and %v", before[i].Err, err)
	}
}

// The lease or session lives on. Each place in the batch has its turn.
func aBatchTellsOfEachRecordThatWasRemoved(t *trial, b kv.Batch) {
	const n = 4
	for gone := range n {
		records := t.many(n)
		t.b.Remove(t, records[gone].Name)
		for i, v := range RefreshAll(t, t.ctx, b, records) {
			if i == gone {
				require.ErrorIs(t, v.Err, kv.ErrStale, "record %d, which was removed", i)
				continue
			}
			require.NoError(t, v.Err, "record %d; that of %d was removed", i, gone)
		}
		t.vacant(records[gone].Name)
	}
}

func aBatchOfNothingReturns(t *trial, b kv.Batch) {
	require.Empty(t, RefreshAll(t, t.ctx, b, nil))
}

func aBatchWhoseContextHasEndedSaysSo(t *trial, b kv.Batch) {
	records := t.many(5)
	why := errors.New("called off")
	ctx, cancel := context.WithCancelCause(t.ctx)
	cancel(why)
	begun := time.Now()
	for i, v := range RefreshAll(t, ctx, b, records) {
		require.Error(t, v.Err, "record %d", i)
		require.True(t, errors.Is(v.Err, why) || errors.Is(v.Err, context.Canceled), "record %d: %v", i, v.Err)
	}
	require.Less(t, time.Since(begun), promptly)
	t.refreshed(records, RefreshAll(t, t.ctx, b, records))
}

func batchesSideBySideTellEachItsOwn(t *trial, b kv.Batch) {
	const batches = 8
	all := make([][]kv.Held, batches)
	told := make([][]Verdict, batches)
	for i := range all {
		all[i] = t.many(5)
	}
	var crowd sync.WaitGroup
	for i, records := range all {
		told[i] = make([]Verdict, len(records))
		crowd.Go(func() {
			b.RefreshAll(t.ctx, records, func(j int, rec kv.Record, err error) { told[i][j] = Verdict{rec, err} })
		})
	}
	crowd.Wait()
	for i, records := range all {
		t.refreshed(records, told[i])
	}
}

func aBatchCostsNoMoreRequests(t *trial, b kv.Batch) {
	if t.b.Requests == nil {
		t.Skip("the store has no requests to count")
	}
	records := t.many(40)
	before := t.requests()
	for _, r := range records {
		t.refresh(t.s, r.Name, r.Record)
	}
	between := t.requests()
	t.refreshed(records, RefreshAll(t, t.ctx, b, records))
	one, together := between-before, t.requests()-between
	require.LessOrEqual(t, together, one+one/10+toBegin, "requests of a batch of %d, and of its records one by one", len(records))
}

func batchesLeaveNoGoroutinesBehind(t *trial, b kv.Batch) {
	records := t.many(10)
	RefreshAll(t, t.ctx, b, records)
	before := goroutines()
	for range 20 {
		RefreshAll(t, t.ctx, b, records)
		ctx, cancel := context.WithTimeout(t.ctx, time.Millisecond)
		RefreshAll(t, ctx, b, records)
		cancel()
	}
	t.settles(before, fewGoroutines)
}
