package kvtest

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

const (
	inOrder     = "A line is a sequence of records. The first is what the safe holds. When it goes, the next one is in the safe at that instant. Tokens grow along the line."
	firstAlone  = "Get and Watch show only the first. Refresh and Swap are only for the first in line, and return ErrStale for any other."
	placesFade  = "A place is a record like any other, with a TTL of its own: if its owner does not call Stay in time, it leaves the line."
	stays       = "Stay restarts the TTL of a place. Leads reports whether it is first in line. Stay returns ErrStale if rec's signature and token are not in line."
	leaves      = "Delete removes a place from the line just as it empties the safe, whether rec is first or not."
	joinTwice   = "If the signature is already in line, Join returns that place as it stands."
	joinNote    = "Of rec, Join uses the Signature, Value, Note and TTL, as Create does. Join and Stay return the place as it stands."
	joinInvalid = "Join returns ErrInvalid as Create does. Then nothing happened."
	noJump      = "A hand-over would jump the line if others wait in it: then Swap returns ErrStale."
	createLine  = "For Create, a safe is vacant if its line is empty."
	isQueue     = "A Queue is a Store in which candidates can wait in line for a safe. Lifetime.Queue is set if candidates wait in line for the store's safes."
)

var queueCases = []Case{
	{Name: "a store is a queue if it keeps lines, and only then", Clause: isQueue, check: aStoreIsAQueueIfItKeepsLines},
	{Name: "to join an empty line is to have the safe", Clause: inOrder + " " + stays, check: toJoinAnEmptyLineIsToHaveTheSafe, needs: lines},
	{Name: "a line is served in order", Clause: inOrder, check: aLineIsServedInOrder, needs: lines},
	{Name: "a watch sees a line go by", Clause: inOrder + " " + firstAlone, check: aWatchSeesALineGoBy, needs: lines},
	{Name: "a place has its note", Clause: joinNote, check: aPlaceHasItsNote, needs: lines},
	{Name: "a place is not yet in the safe", Clause: firstAlone, check: aPlaceIsNotYetInTheSafe, needs: lines},
	{Name: "a place lasts as long as its owner stays", Clause: stays, check: aPlaceLastsAsLongAsItsOwnerStays, needs: lines, long: true},
	{Name: "a place that nobody keeps leaves the line", Clause: placesFade, check: aPlaceThatNobodyKeepsLeavesTheLine, needs: lines},
	{Name: "a first in line that nobody keeps makes room", Clause: inOrder + " " + placesFade, check: aFirstInLineThatNobodyKeepsMakesRoom, needs: lines},
	{Name: "a place can be given up", Clause: leaves, check: aPlaceCanBeGivenUp, needs: lines},
	{Name: "a signature has one place", Clause: joinTwice, check: aSignatureHasOnePlace, needs: lines},
	{Name: "a line that is not empty is not vacant", Clause: createLine, check: aLineThatIsNotEmptyIsNotVacant, needs: lines},
	{Name: "nobody jumps the line", Clause: noJump, check: nobodyJumpsTheLine, needs: lines},
	{Name: "others in line are respected", Clause: inOrder + " " + foreignKept, check: othersInLineAreRespected, needs: lines},
	{Name: "a join that cannot be is refused", Clause: joinInvalid, check: aJoinThatCannotBeIsRefused, needs: lines},
}

// queue returns the client as a store with lines.
func (t *trial) queue() kv.Queue {
	t.Helper()
	q, ok := t.s.(kv.Queue)
	require.True(t, ok, "a Backend has Line, but the store is no kv.Queue")
	return q
}

func (t *trial) join(name string, rec kv.Record) kv.Record {
	t.Helper()
	place, err := t.queue().Join(t.ctx, name, rec)
	require.NoError(t, err, "join %.80q", name)
	require.Equal(t, rec.Signature, place.Signature)
	require.Equal(t, rec.Value, place.Value)
	require.GreaterOrEqual(t, place.TTL, rec.TTL)
	require.False(t, place.Foreign || place.Permanent)
	t.Cleanup(func() { _ = t.s.Delete(context.WithoutCancel(t.ctx), name, place) })
	return place
}

// stay keeps a place, and requires that it is first in line or not.
func (t *trial) stay(name string, place kv.Record, first bool) {
	t.Helper()
	got, leads, err := t.queue().Stay(t.ctx, name, place)
	require.NoError(t, err, "stay in %.80q", name)
	require.True(t, got.Owns(place), "it returned %s", describe(got))
	require.Equal(t, first, leads, "whether it leads")
}

func (t *trial) gone(name string, place kv.Record) {
	t.Helper()
	_, _, err := t.queue().Stay(t.ctx, name, place)
	require.ErrorIs(t, err, kv.ErrStale)
}

func aStoreIsAQueueIfItKeepsLines(t *trial) {
	_, ok := t.s.(kv.Queue)
	require.Equal(t, t.b.Line != nil, ok, "a Backend has Line if its store is a kv.Queue, and only then")
	require.Equal(t, ok, t.lifetime(t.ttl).Queue, "Lifetime.Queue")
}

func toJoinAnEmptyLineIsToHaveTheSafe(t *trial) {
	name := t.name()
	place := t.join(name, t.signed("v"))
	t.holds(name, place)
	t.stay(name, place, true)
	t.holds(name, t.refresh(t.s, name, place))
	t.holds(name, t.publish(t.s, name, place, "changed"))
}

func aLineIsServedInOrder(t *trial) {
	name, first := t.held()
	line := []kv.Record{first}
	for range 3 {
		line = append(line, t.join(name, t.signed("v")))
	}
	for i, rec := range line {
		require.True(t, t.get(t.s, name).Owns(rec), "place %d", i)
		if i > 0 {
			require.Greater(t, rec.Token, line[i-1].Token)
		}
		t.stay(name, rec, true)
		t.delete(t.s, name, rec)
	}
	t.vacant(name)
	require.Greater(t, t.create(t.s, name, t.signed("after them")).Token, line[3].Token)
}

func aWatchSeesALineGoBy(t *trial) {
	name, first := t.held()
	w := t.watch(t.open(), name)
	w.sees(first)
	second, third := t.join(name, t.signed("2")), t.join(name, t.signed("3"))
	t.delete(t.s, name, second) // which was not to be seen
	first = t.publish(t.s, name, first, "changed")
	require.Equal(t, first, w.next().rec, "what goes on behind the first is not told")
	t.delete(t.s, name, first)
	require.Equal(t, third, w.next().rec, "there is no vacancy in between")
	t.delete(t.s, name, third)
	w.seesVacancy()
}

func aPlaceHasItsNote(t *trial) {
	name, first := t.held()
	place := t.join(name, note.of(t.signed("v"), `"note" 🗝`))
	t.carried(note, place, `"note" 🗝`)
	got, _, err := t.queue().Stay(t.ctx, name, place)
	require.NoError(t, err)
	require.Equal(t, place, got)
	require.Equal(t, place, t.join(name, t.like(place)))
	t.delete(t.s, name, first)
	t.holds(name, place)
	t.holds(name, t.swap(t.s, name, place, note.of(place, "it leads")))
}

func aPlaceIsNotYetInTheSafe(t *trial) {
	name, first := t.held()
	place := t.join(name, t.signed("v"))
	t.holds(name, first)
	t.stay(name, place, false)
	_, err := t.s.Refresh(t.ctx, name, place)
	require.ErrorIs(t, err, kv.ErrStale)
	next := place
	next.Value = "changed"
	_, err = t.s.Swap(t.ctx, name, place, next)
	require.ErrorIs(t, err, kv.ErrStale)
	_, err = t.s.Swap(t.ctx, name, place, t.signed("another"))
	require.ErrorIs(t, err, kv.ErrStale)
	t.holds(name, first)
	t.stay(name, place, false)
}

func aPlaceLastsAsLongAsItsOwnerStays(t *trial) { t.patiently(t.lastsWhileItsOwnerStays) }

// lastsWhileItsOwnerStays reports whether the owner has stayed in time.
func (t *trial) lastsWhileItsOwnerStays() bool {
	name, first := t.held()
	last := time.Now()
	place := t.join(name, t.mortal("v"))
	for end := last.Add(2 * t.lifetime(place.TTL).Max); time.Now().Before(end); time.Sleep(t.ttl / 5) {
		start := time.Now()
		got, leads, err := t.queue().Stay(t.ctx, name, place)
		if time.Since(last) >= t.ttl {
			return false
		}
		require.NoError(t, err)
		require.True(t, got.Owns(place), "it returned %s", describe(got))
		require.False(t, leads, "it leads beside the first")
		last = start
	}
	t.delete(t.s, name, first)
	got, err := t.s.Get(t.ctx, name)
	if time.Since(last) >= t.ttl {
		return false
	}
	require.NoError(t, err)
	require.Equal(t, place, got)
	return true
}

func aPlaceThatNobodyKeepsLeavesTheLine(t *trial) {
	name, first := t.held()
	start := time.Now()
	place := t.join(name, t.mortal("v"))
	last := t.join(name, t.signed("the next"))
	q := t.queue()
	for deadline := start.Add(t.lifetime(place.TTL).Max + patience); ; time.Sleep(t.ttl / 50) {
		asked := time.Now()
		if got, err := q.Join(t.ctx, name, t.like(place)); err == nil && got.Owns(place) {
			require.True(t, asked.Before(deadline), "it is still there")
			continue
		}
		require.False(t, time.Now().Before(earliest(start, place.TTL)), "it left before its TTL of %v", place.TTL)
		break
	}
	t.gone(name, place)
	t.holds(name, first)
	t.delete(t.s, name, first)
	t.holds(name, last)
}

// like returns what the owner of rec wrote.
func (t *trial) like(rec kv.Record) kv.Record {
	return kv.Record{Signature: rec.Signature, Value: rec.Value, Note: rec.Note, TTL: rec.TTL}
}

func aFirstInLineThatNobodyKeepsMakesRoom(t *trial) {
	name := t.name()
	first := t.create(t.s, name, t.mortal("v"))
	start := time.Now()
	place := t.join(name, t.signed("the next"))
	w := t.watch(t.s, name)
	w.sees(place) // the first may be gone before the watch begins
	require.Less(t, time.Since(start), t.lifetime(first.TTL).Max+patience)
	t.stay(name, place, true)
	t.disowned(t.s, name, first)
	t.gone(name, first)
	t.holds(name, place)
}

func aPlaceCanBeGivenUp(t *trial) {
	name, first := t.held()
	place, last := t.join(name, t.signed("v")), t.join(name, t.signed("last"))
	t.delete(t.s, name, place)
	t.gone(name, place)
	require.ErrorIs(t, t.s.Delete(t.ctx, name, place), kv.ErrStale)
	t.holds(name, first)
	t.delete(t.s, name, first)
	t.holds(name, last)
}

func aSignatureHasOnePlace(t *trial) {
	name, first := t.held()
	place := t.join(name, t.signed("v"))
	require.Equal(t, place, t.join(name, t.like(place)))
	t.delete(t.s, name, first)
	t.holds(name, place)
	require.Equal(t, place, t.join(name, t.like(place)), "though it is first now")
	t.delete(t.s, name, place)
	t.vacant(name)
}

func aLineThatIsNotEmptyIsNotVacant(t *trial) {
	name, first := t.held()
	place := t.join(name, t.signed("v"))
	for _, rec := range []kv.Record{first, place} {
		_, err := t.s.Create(t.ctx, name, t.signed("another"))
		require.ErrorIs(t, err, kv.ErrHeld)
		t.holds(name, rec)
		t.delete(t.s, name, rec)
	}
	t.create(t.s, name, t.signed("another"))
}

func nobodyJumpsTheLine(t *trial) {
	name, first := t.held()
	place := t.join(name, t.signed("v"))
	_, err := t.s.Swap(t.ctx, name, first, t.signed("an heir"))
	require.ErrorIs(t, err, kv.ErrStale)
	t.holds(name, first)
	first = t.publish(t.s, name, first, "changed")
	t.delete(t.s, name, place)
	heir := t.swap(t.s, name, first, t.signed("an heir"))
	require.Greater(t, heir.Token, place.Token)
	t.holds(name, heir)
}

func othersInLineAreRespected(t *trial) {
	name := t.name()
	t.b.Line(t, name, "host-7")
	place := t.join(name, t.signed("v"))
	t.b.Line(t, name, "host-8")
	rec := t.unharmed(name, "host-7")
	t.stay(name, place, false)
	require.ErrorIs(t, t.s.Delete(t.ctx, name, rec), kv.ErrInvalid)
	_, _, err := t.queue().Stay(t.ctx, name, rec)
	require.ErrorIs(t, err, kv.ErrInvalid)
	_, err = t.s.Create(t.ctx, name, t.signed("another"))
	require.ErrorIs(t, err, kv.ErrHeld)
	t.delete(t.s, name, place)
	t.unharmed(name, "host-7")
}

func aJoinThatCannotBeIsRefused(t *trial) {
	name := t.name()
	for what, rec := range map[string]kv.Record{
		"no signature": {Value: "v", TTL: ample},
		"no TTL":       {Signature: "s", Value: "v"},
		"a dead TTL":   {Signature: "s", Value: "v", TTL: -time.Second},
	} {
		_, err := t.queue().Join(t.ctx, name, rec)
		require.ErrorIs(t, err, kv.ErrInvalid, what)
	}
	_, err := t.queue().Join(t.ctx, "", t.signed("v"))
	require.ErrorIs(t, err, kv.ErrInvalid, "no name")
	ended, cancel := context.WithCancel(t.ctx)
	cancel()
	_, err = t.queue().Join(ended, name, t.signed("v"))
	require.ErrorIs(t, err, context.Canceled)
	t.vacant(name)
}
