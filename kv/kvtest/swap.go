package kvtest

import (
	"strconv"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

const (
	publishes = "With old's signature in next, Swap publishes next.Value and next.Note: token, lease and TTL stay, and the record's life is at least not shortened."
	noted     = "Note: published with the value and changed with it. Revision changes with each change of the record. Watch yields the state after each change."
	swapStale = "Swap replaces old by next if the safe still holds old at old.Revision. It returns ErrStale if the safe holds anything else. ErrStale: had no effect."
)

var swapCases = []Case{
	{Name: "publishing changes value and revision alone", Clause: publishes, check: publishingChangesValueAndRevisionAlone},
	{Name: "publishing a note alone is a change", Clause: publishes + " " + noted, check: publishingANoteAloneIsAChange},
	{Name: "value and note are published together", Clause: publishes + " " + noted, check: valueAndNoteArePublishedTogether},
	{Name: "publishing the same value again does no harm", Clause: publishes, check: publishingTheSameValueAgainDoesNoHarm},
	{Name: "publishing does not change the TTL", Clause: publishes, check: publishingDoesNotChangeTheTTL},
	{Name: "publishing does not shorten a life", Clause: publishes, check: publishingDoesNotShortenALife},
	{
		Name:   "an owner keeps its record through its own changes",
		Clause: "A record is identified by its Signature and Token together. Refresh and Delete look at no revision.",
		check:  anOwnerKeepsItsRecordThroughItsOwnChanges,
	},
	{Name: "a swap at an old revision is refused", Clause: swapStale, check: aSwapAtAnOldRevisionIsRefused},
	{Name: "a swap of what the safe does not hold is refused", Clause: swapStale, check: aSwapOfWhatTheSafeDoesNotHoldIsRefused},
}

func publishingChangesValueAndRevisionAlone(t *trial) {
	name, rec := t.held()
	revisions := map[uint64]bool{rec.Revision: true}
	for _, value := range []string{"one", "two", "", "two", "one"} {
		got := t.publish(t.s, name, rec, value)
		require.False(t, revisions[got.Revision], "a revision comes twice: %+v", got)
		revisions[got.Revision] = true
		want := rec
		want.Value, want.Revision = value, got.Revision
		require.Equal(t, want, got)
		t.holds(name, got)
		rec = got
	}
}

func publishingANoteAloneIsAChange(t *trial) {
	for _, value := range []string{"v", ""} {
		name := t.name()
		rec := t.create(t.s, name, t.signed(value))
		w := t.watch(t.open(), name)
		w.sees(rec)
		for _, text := range []string{"one", "two", "", "two"} {
			got := t.swap(t.s, name, rec, note.of(rec, text))
			require.NotEqual(t, rec.Revision, got.Revision)
			want := note.of(rec, text)
			want.Revision = got.Revision
			require.Equal(t, want, got)
			t.holds(name, got)
			w.sees(got)
			require.Equal(t, got, t.refresh(t.s, name, rec), "an owner keeps its record through its own changes")
			rec = got
		}
	}
}

func valueAndNoteArePublishedTogether(t *trial) {
	name, rec := t.name(), note.of(t.signed("0"), "0")
	rec = t.create(t.s, name, rec)
	w := t.watch(t.open(), name)
	for i := range 10 {
		text := strconv.Itoa(i)
		rec = t.swap(t.s, name, rec, note.of(value.of(rec, text), text))
		require.Equal(t, text, rec.Value)
		require.Equal(t, text, rec.Note)
		t.holds(name, rec)
	}
	for o := w.next(); ; o = w.next() {
		require.Equal(t, o.rec.Value, o.rec.Note, "one was to be seen without the other")
		if o.rec == rec {
			return
		}
	}
}

// Some stores do not count a write that changes nothing as a write.
func publishingTheSameValueAgainDoesNoHarm(t *trial) {
	name, rec := t.held()
	for range 3 {
		got := t.publish(t.s, name, rec, rec.Value)
		require.True(t, got.Owns(rec), "%+v", got)
		t.holds(name, got)
		t.refresh(t.s, name, got)
		rec = got
	}
}

func publishingDoesNotChangeTheTTL(t *trial) {
	name, rec := t.held()
	next := rec
	next.Value, next.TTL = "changed", 2*rec.TTL
	got := t.swap(t.s, name, rec, next)
	require.Equal(t, rec.TTL, got.TTL)
	t.holds(name, got)
}

func publishingDoesNotShortenALife(t *trial) {
	name, rec, created, _ := t.inTime(0, func(name string, rec kv.Record) (_ kv.Record, err error) {
		for range 5 {
			next := rec
			next.Value += "+"
			if rec, err = t.s.Swap(t.ctx, name, rec, next); err != nil {
				return rec, err
			}
		}
		return rec, nil
	})
	t.fades(name, rec, created, nil)
}

func anOwnerKeepsItsRecordThroughItsOwnChanges(t *trial) {
	name, created := t.held()
	changed := t.publish(t.s, name, created, "changed")
	got := t.refresh(t.s, name, created)
	require.Equal(t, changed, got, "a refresh returns the record as it stands in the safe")
	t.holds(name, changed)
	t.delete(t.s, name, created)
	t.vacant(name)
}

func aSwapAtAnOldRevisionIsRefused(t *trial) {
	name, old := t.held()
	rec := t.publish(t.s, name, old, "changed")
	for _, next := range []kv.Record{t.signed("taken over"), {Signature: old.Signature, Value: "late", TTL: old.TTL, Lease: old.Lease}} {
		got, err := t.s.Swap(t.ctx, name, old, next)
		require.ErrorIs(t, err, kv.ErrStale, "it returned %+v", got)
		t.holds(name, rec)
	}
}

func aSwapOfWhatTheSafeDoesNotHoldIsRefused(t *trial) {
	name, rec := t.held()
	token, signature := rec, rec
	token.Token++
	signature.Signature = t.signed("").Signature
	for _, old := range []kv.Record{token, signature} {
		got, err := t.s.Swap(t.ctx, name, old, t.signed("taken over"))
		require.ErrorIs(t, err, kv.ErrStale, "it returned %+v", got)
		next := old
		next.Value = "changed"
		got, err = t.s.Swap(t.ctx, name, old, next)
		require.ErrorIs(t, err, kv.ErrStale, "it returned %+v", got)
		t.holds(name, rec)
	}
}
