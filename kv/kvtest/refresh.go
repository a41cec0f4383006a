package kvtest

import (
	"errors"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

const (
	refreshProves = "Success proves that the safe held rec's signature and token during the call: renewing a lease or session is no such proof, so Refresh reads the key itself."
	neverBack     = "Refresh returns ErrStale if the safe does not hold rec. It never brings a record back."
)

var refreshCases = []Case{
	{
		Name:   "a refresh changes nothing that a reader sees",
		Clause: "Except for Held.Share, Refresh changes neither value nor token nor revision: no caller sees it, whether the store or the candidates judge expiry.",
		check:  aRefreshChangesNothingThatAReaderSees,
	},
	{
		Name:   "a refresh starts the TTL anew",
		Clause: "Refresh restarts the TTL of the caller's record. The TTL in the returned record is what this refresh granted, counted from the start of this call.",
		check:  aRefreshStartsTheTTLAnew,
	},
	{
		Name:   "refreshes hold a safe for as long as they go on, whatever is published",
		Clause: "A record expires once its time to live has passed since its owner last refreshed it. Value: any bytes.",
		check:  refreshesHoldASafe,
	},
	{
		Name:   "another client that watches does not judge a record expired that is refreshed",
		Clause: neverEarly + " A refresh restarts the TTL, for every client that reads or watches the safe.",
		check:  aWatchOfAnotherClientKnowsOfRefreshes,
	},
	{Name: "a refresh after an operator's removal is refused and brings nothing back", Clause: refreshProves + " " + neverBack, check: aRefreshAfterARemovalIsRefused, needs: remove},
	{Name: "a refresh after an operator's removal leaves the successor alone", Clause: refreshProves + " " + neverBack, check: aRefreshAfterARemovalLeavesTheSuccessorAlone, needs: remove},
	{Name: "a refresh of an expired record is refused and brings nothing back", Clause: neverBack, check: aRefreshOfAnExpiredRecordIsRefused},
	{Name: "a refresh after an expiry leaves the successor alone", Clause: neverBack, check: aRefreshAfterAnExpiryLeavesTheSuccessorAlone},
}

func aRefreshChangesNothingThatAReaderSees(t *trial) {
	name, rec := t.held()
	for range 5 {
		got := t.refresh(t.s, name, rec)
		require.GreaterOrEqual(t, got.TTL, ample, "the TTL that was granted")
		got.TTL = rec.TTL
		require.Equal(t, rec, got)
		t.holds(name, rec)
	}
}

func aRefreshStartsTheTTLAnew(t *trial) {
	name, rec, _, start := t.inTime(t.ttl/2, func(name string, rec kv.Record) (kv.Record, error) {
		return t.s.Refresh(t.ctx, name, rec)
	})
	require.GreaterOrEqual(t, rec.TTL, t.ttl)
	t.fades(name, rec, start, nil)
}

// inTime does something with a record that is so old, and returns what became of it, when
// it was created, and when that was begun. It tries again, with a longer TTL, where the machine was
// too busy to do so before the record faded.
func (t *trial) inTime(age time.Duration, do func(name string, rec kv.Record) (kv.Record, error)) (name string, rec kv.Record, created, start time.Time) {
	t.Helper()
	for ; ; t.longer("do anything with a record") {
		name, created = t.name(), time.Now()
		old := t.create(t.s, name, t.mortal("v"))
		time.Sleep(age)
		start = time.Now()
		rec, err := do(name, old)
		if err != nil && time.Since(created) >= old.TTL {
			t.Logf("%v after its creation: %v", time.Since(created), err)
			continue
		}
		require.NoError(t, err)
		return name, rec, created, start
	}
}

// longer doubles the TTL, and gives up once nobody can say that it was too short.
func (t *trial) longer(to string) {
	t.Helper()
	require.Less(t, t.ttl, 30*time.Second, "this machine is too busy to %s before it fades", to)
	t.ttl *= 2
}

// patiently tries something that takes refreshes in time. It tries again, with a longer TTL, where
// the machine was too busy for that.
func (t *trial) patiently(try func() (inTime bool)) {
	t.Helper()
	for !try() {
		t.longer("refresh a record")
	}
}

func refreshesHoldASafe(t *trial) { t.patiently(t.holdForThreeTTL) }

func (t *trial) holdForThreeTTL() bool {
	values := []string{"v", "", "\x00\xff\xfe", strings.Repeat("x", 64<<10), `{"election":1}`, "ключ 🗝"}
	name, other := t.name(), t.open()
	begin := time.Now()
	last := begin
	rec := t.create(t.s, name, t.mortal("v"))
	for i := 0; time.Since(begin) < 3*rec.TTL+rec.TTL/2; i++ {
		time.Sleep(t.ttl / 6)
		_, err := t.s.Create(t.ctx, name, t.signed("usurper"))
		require.True(t, time.Since(last) >= t.ttl || errors.Is(err, kv.ErrHeld), "a create beside a live owner: %v", err)
		start := time.Now()
		got, err := t.s.Refresh(t.ctx, name, rec)
		if err != nil && time.Since(last) >= t.ttl {
			t.Logf("%v passed between two refreshes: %v", time.Since(last), err)
			return false
		}
		require.NoError(t, err, "a refresh %v after the start of the last; value %.20q", start.Sub(last), rec.Value)
		require.True(t, got.Owns(rec), "%+v", got)
		last = start
		rec, err = t.s.Swap(t.ctx, name, got, kv.Record{Signature: got.Signature, TTL: got.TTL, Lease: got.Lease, Value: values[i%len(values)]})
		if err != nil && time.Since(last) >= t.ttl {
			return false
		}
		require.NoError(t, err, "publish %.20q", values[i%len(values)])
		seen, err := other.Get(t.ctx, name)
		if err != nil && time.Since(last) >= t.ttl {
			return false
		}
		require.NoError(t, err)
		require.Equal(t, rec, seen)
	}
	return true
}

// Whoever judges by what it sees has to see refreshes, though it tells nobody of them.
func aWatchOfAnotherClientKnowsOfRefreshes(t *trial) {
	t.patiently(func() bool { return t.staysAlive(t.ttl * 3 / 2) })
}

// staysAlive refreshes a record for d, and requires that another client's watch tells
// of no vacancy meanwhile. It returns false if a refresh was so late that the record
// may have expired.
func (t *trial) staysAlive(d time.Duration) bool {
	name := t.name()
	w := t.watch(t.open(), name)
	require.True(t, w.next().vacant(), "a vacant safe")
	begin := time.Now()
	last := begin
	rec := t.create(t.s, name, t.mortal("v"))
	for time.Since(begin) < d {
		time.Sleep(t.ttl / 6)
		start := time.Now()
		_, err := t.s.Refresh(t.ctx, name, rec)
		if !time.Now().Before(earliest(last, t.ttl)) {
			return false
		}
		require.NoError(t, err, "a refresh %v after the start of the last", start.Sub(last))
		last = start
	}
	told := w.told()
	if !time.Now().Before(earliest(last, t.ttl)) {
		return false
	}
	for _, o := range told {
		require.NoError(t, o.err, "told of a record that was refreshed every %v; its TTL is %v", t.ttl/6, t.ttl)
	}
	return true
}

func aRefreshAfterARemovalIsRefused(t *trial) {
	name, rec := t.held()
	t.b.Remove(t, name)
	for range 3 {
		t.disowned(t.s, name, rec)
		t.vacant(name)
	}
}

func aRefreshAfterARemovalLeavesTheSuccessorAlone(t *trial) {
	name, old := t.held()
	t.b.Remove(t, name)
	start := time.Now()
	rec := t.succeed(t.open(), name, t.mortal("the next"))
	t.fades(name, rec, start, func() { t.disowned(t.s, name, old) })
	t.disowned(t.s, name, old)
	t.vacant(name)
}

func aRefreshOfAnExpiredRecordIsRefused(t *trial) {
	name, start := t.name(), time.Now()
	rec := t.create(t.s, name, t.mortal("v"))
	t.fades(name, rec, start, nil)
	for range 3 {
		t.disowned(t.s, name, rec)
		t.vacant(name)
	}
}

func aRefreshAfterAnExpiryLeavesTheSuccessorAlone(t *trial) {
	name, start := t.name(), time.Now()
	old := t.create(t.s, name, t.mortal("the old"))
	t.fades(name, old, start, nil)
	start = time.Now()
	rec := t.succeed(t.open(), name, t.mortal("the next"))
	t.fades(name, rec, start, func() { t.disowned(t.s, name, old) })
	t.vacant(name)
}
