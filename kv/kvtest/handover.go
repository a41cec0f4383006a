package kvtest

import (
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

const heirsLease = "If next.Lease is set (next was read from this store: the heir's own record in another safe), that lease backs the record from now on, and the call keeps it alive for that TTL, however long ago the heir last refreshed its own record."

var handoverCases = []Case{
	{Name: "a hand-over to an heir replaces the record", Clause: handsOver + " " + heirsLease, check: aHandOverToAnHeirReplacesTheRecord},
	{Name: "a hand-over leaves the heir's own safe unharmed", Clause: heirsLease, check: aHandOverLeavesTheHeirsOwnSafeUnharmed},
	{Name: "a hand-over puts the next note", Clause: handsOver + " Note: published with the value and changed with it.", check: aHandOverPutsTheNextNote},
	{Name: "a hand-over grants the heir a full life", Clause: handsOver + " " + heirsLease, check: aHandOverGrantsTheHeirAFullLife},
	{
		Name:   "an heir that gives up its own safe keeps the one handed over",
		Clause: "Delete frees what backed the record, or lets it expire, unless other records share it.",
		check:  anHeirThatGivesUpItsOwnSafeKeepsTheOneHandedOver,
	},
	{
		Name:   "an heir that gives up the safe handed over keeps its own",
		Clause: "Delete frees what backed the record, or lets it expire, unless other records share it.",
		check:  anHeirThatGivesUpTheSafeHandedOverKeepsItsOwn,
	},
	{
		Name:   "nothing is handed over to an heir that is gone",
		Clause: "Swap returns ErrStale if next.Lease is gone. ErrStale: had no effect.",
		check:  nothingIsHandedOverToAnHeirThatIsGone,
	},
	{
		Name:   "nothing is handed over to an heir whose record has faded",
		Clause: "Swap returns ErrStale if next.Lease is gone. ErrStale: had no effect.",
		check:  nothingIsHandedOverToAnHeirWhoseRecordHasFaded,
	},
	{
		Name:   "a hand-over to an heir that gives up meanwhile holds or is refused",
		Clause: handsOver + " Swap returns ErrStale if next.Lease is gone. Delete frees what backed the record, or lets it expire, unless other records share it.",
		check:  aHandOverToAnHeirThatGivesUpMeanwhileHoldsOrIsRefused,
	},
	{
		Name:   "one lease may back many records",
		Clause: "Lease: several records may share a lease. Delete frees what backed the record, or lets it expire, unless other records share it.",
		check:  oneLeaseMayBackManyRecords,
	},
	{
		Name:   "a hand-over at an old revision is refused and harms neither safe",
		Clause: swapStale,
		check:  aHandOverAtAnOldRevisionIsRefused,
	},
}

// A succession is a leader's safe and its heir's.
type succession struct {
	t            *trial
	lead, second string    // the names of the safes
	leader, heir kv.Record // what they hold
	s            kv.Store  // the heir's client
}

// succession sets up a leader and an heir with the given TTL, which are two
// processes.
func (t *trial) succession(ttl time.Duration) *succession {
	t.Helper()
	n := &succession{t: t, lead: t.name(), second: t.name(), s: t.open()}
	heir, leader := t.signed("I am the heir"), t.signed("I lead")
	heir.TTL, leader.TTL = ttl, ttl
	n.heir = t.create(n.s, n.second, heir)
	n.leader = t.create(t.s, n.lead, leader)
	return n
}

// handOver swaps the heir, as the leader reads it in the heir's own safe, into
// the leader's safe.
func (n *succession) handOver() kv.Record {
	n.t.Helper()
	next := n.t.get(n.t.s, n.second)
	require.True(n.t, next.Owns(n.heir))
	next.Value = "you lead"
	rec := n.t.swap(n.t.s, n.lead, n.leader, next)
	require.Equal(n.t, n.heir.Signature, rec.Signature)
	require.Equal(n.t, "you lead", rec.Value)
	require.Greater(n.t, rec.Token, n.leader.Token)
	require.GreaterOrEqual(n.t, rec.TTL, n.heir.TTL)
	n.t.holds(n.lead, rec)
	return rec
}

func aHandOverToAnHeirReplacesTheRecord(t *trial) {
	n := t.succession(ample)
	rec := n.handOver()
	t.disowned(t.s, n.lead, n.leader)
	t.holds(n.lead, rec)
	// The heir learns of it from the safe alone.
	mine := t.get(n.s, n.lead)
	require.Equal(t, rec, mine)
	mine = t.publish(n.s, n.lead, t.refresh(n.s, n.lead, mine), "I lead now")
	t.holds(n.lead, mine)
	t.delete(n.s, n.lead, mine)
	t.vacant(n.lead)
}

func aHandOverLeavesTheHeirsOwnSafeUnharmed(t *trial) {
	n := t.succession(ample)
	rec := n.handOver()
	t.holds(n.second, n.heir)
	require.Equal(t, n.heir.Revision, t.refresh(n.s, n.second, n.heir).Revision)
	t.publish(n.s, n.second, n.heir, "heir no more")
	t.holds(n.lead, rec)
}

// The leader composes the note that the heir begins with. What either had before
// is another.
func aHandOverPutsTheNextNote(t *trial) {
	n := t.succession(ample)
	n.leader = t.swap(t.s, n.lead, n.leader, note.of(n.leader, "the leader's"))
	n.heir = t.swap(n.s, n.second, n.heir, note.of(n.heir, "the heir's"))
	rec := t.swap(t.s, n.lead, n.leader, note.of(t.get(t.s, n.second), "handed over"))
	t.carried(note, rec, "handed over")
	t.holds(n.lead, rec)
	t.holds(n.second, n.heir)
	rec = t.swap(n.s, n.lead, rec, note.of(rec, "it leads"))
	n.heir = t.swap(n.s, n.second, n.heir, note.of(n.heir, "heir no more"))
	t.holds(n.lead, rec)
	t.holds(n.second, n.heir)
	for _, text := range []string{"taken over", ""} {
		rec = t.swap(t.s, n.lead, rec, note.of(t.signed("the next"), text))
		t.carried(note, rec, text)
		t.holds(n.lead, rec)
	}
}

// Half of the heir's life has passed when the safe is handed over. On a machine that
// is too busy for that, all of it has, and another heir is needed.
func aHandOverGrantsTheHeirAFullLife(t *trial) {
	for {
		begun := time.Now()
		n := t.succession(t.ttl)
		time.Sleep(t.ttl / 2)
		start := time.Now()
		next := n.heir
		next.Value = "you lead"
		rec, err := t.s.Swap(t.ctx, n.lead, n.leader, next)
		if errors.Is(err, kv.ErrStale) && time.Since(begun) > t.ttl {
			continue // until the trial's context ends
		}
		require.NoError(t, err, "hand over %.80q", n.lead)
		t.fades(n.lead, rec, start, nil)
		return
	}
}

func anHeirThatGivesUpItsOwnSafeKeepsTheOneHandedOver(t *trial) {
	n := t.succession(ample)
	rec := n.handOver()
	t.delete(n.s, n.second, n.heir)
	t.vacant(n.second)
	t.keeps(n.lead, rec)
}

func anHeirThatGivesUpTheSafeHandedOverKeepsItsOwn(t *trial) {
	n := t.succession(ample)
	rec := n.handOver()
	t.delete(n.s, n.lead, rec)
	t.vacant(n.lead)
	t.keeps(n.second, n.heir)
}

// keeps requires that the safe goes on holding rec for a while.
func (t *trial) keeps(name string, rec kv.Record) {
	t.Helper()
	for range 5 {
		t.holds(name, rec)
		t.refresh(t.s, name, rec)
		time.Sleep(t.ttl / 5)
	}
	t.holds(name, rec)
}

// A store without leases has nothing that could be gone.
func nothingIsHandedOverToAnHeirThatIsGone(t *trial) {
	n := t.succession(ample)
	next := t.get(t.s, n.second)
	t.delete(n.s, n.second, n.heir)
	n.refuses(next)
}

func nothingIsHandedOverToAnHeirWhoseRecordHasFaded(t *trial) {
	second, start := t.name(), time.Now()
	heir := t.create(t.open(), second, t.mortal("I am the heir"))
	t.fades(second, heir, start, nil)
	n := &succession{t: t}
	n.lead, n.leader = t.held()
	n.refuses(heir)
}

// refuses requires that nothing is handed over to next, whose lease is gone if
// it ever had one.
func (n *succession) refuses(next kv.Record) {
	n.t.Helper()
	if next.Lease == "" {
		return
	}
	got, err := n.t.s.Swap(n.t.ctx, n.lead, n.leader, next)
	require.ErrorIs(n.t, err, kv.ErrStale, "it returned %+v", got)
	n.t.holds(n.lead, n.leader)
	n.t.refresh(n.t.s, n.lead, n.leader)
}

// The heir frees what backs its record at the moment in which that comes to
// back another.
func aHandOverToAnHeirThatGivesUpMeanwhileHoldsOrIsRefused(t *trial) {
	for i := range 40 {
		n := t.succession(ample)
		next := t.get(t.s, n.second)
		ahead := time.Duration(i-20) * t.ttl / 5000
		gaveUp := make(chan error)
		go func() {
			time.Sleep(-ahead)
			gaveUp <- n.s.Delete(t.ctx, n.second, n.heir)
		}()
		time.Sleep(ahead)
		rec, err := t.s.Swap(t.ctx, n.lead, n.leader, next)
		require.NoError(t, <-gaveUp, "the heir's delete of its own record")
		if err != nil {
			require.ErrorIs(t, err, kv.ErrStale)
			rec = n.leader
		}
		t.holds(n.lead, rec)
		t.refresh(t.s, n.lead, rec)
		t.delete(t.s, n.lead, rec)
	}
}

// The heir takes over two safes, and gives up its own and then one of the two.
func oneLeaseMayBackManyRecords(t *trial) {
	n := t.succession(ample)
	one, first := n.lead, n.handOver()
	n.lead, n.leader = t.held()
	second := n.handOver()
	t.holds(n.second, n.heir)
	t.delete(n.s, n.second, n.heir)
	t.keeps(one, first)
	t.keeps(n.lead, second)
	t.delete(n.s, one, first)
	t.keeps(n.lead, second)
	t.delete(n.s, n.lead, second)
	t.vacant(n.lead)
}

func aHandOverAtAnOldRevisionIsRefused(t *trial) {
	n := t.succession(ample)
	rec := t.publish(t.s, n.lead, n.leader, "changed")
	got, err := t.s.Swap(t.ctx, n.lead, n.leader, t.get(t.s, n.second))
	require.ErrorIs(t, err, kv.ErrStale, "it returned %+v", got)
	t.holds(n.lead, rec)
	t.holds(n.second, n.heir)
	t.refresh(t.s, n.lead, rec)
	t.refresh(n.s, n.second, n.heir)
}
