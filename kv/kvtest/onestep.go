package kvtest

import (
	"crypto/rand"
	"errors"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

const (
	inOneStep   = "HandOver puts heir's signature, value and lease, with note as its note, into the safe called name in the place of old. The record gets a new, larger token; it is returned as it stands in the safe. In either case the TTL of the record is heir's."
	placeStays  = "The safe called place stays as it is."
	renewsNone  = "Unlike a Swap with another signature, HandOver renews nothing. If heir.Lease is set, the record lives for as long as the lease does, which is counted from the heir's own last write or refresh. If not, the record gets its full TTL from the start of the call."
	bothHold    = "HandOver puts heir in the place of old, if that safe still holds old at old.Revision and the safe called place still holds heir (its signature and token, at heir.Revision). It returns ErrStale if either safe holds anything else, or nothing, or if the heir's lease is gone. ErrStale: had no effect."
	oneStep     = "Both conditions and the write are one atomic step of the store."
	unjumped    = "HandOver returns ErrStale if others wait in the line of the safe called name."
	noHeir      = "HandOver returns ErrInvalid if either record is foreign or has no signature, if heir has old's signature, if heir.Lease is the lease that backs old, or for a name or a note that the store does not take. " + invalid
	unsupported = "HandOver returns an error that matches errors.ErrUnsupported if the store cannot do this in one step for these two safes. Then nothing happened."
	sharing     = "Delete frees what backed the record, or lets it expire, unless other records share it."
)

// The cases of a kv.HandOver. A store that is none skips them, but for the first.
var oneStepCases = slices.Concat([]Case{
	{Name: "a store that hands nothing over in one step says so", Clause: unsupported, check: aStoreThatHandsNothingOverInOneStepSaysSo},
	{Name: "a hand-over in one step replaces the record", Clause: inOneStep, check: whole(aHandOverInOneStepReplacesTheRecord)},
	{Name: "tokens grow across hand-overs in one step", Clause: inOneStep + " " + tokensGrow, check: whole(tokensGrowAcrossHandOversInOneStep)},
	{Name: "a hand-over in one step puts the note given", Clause: inOneStep, check: whole(aHandOverInOneStepPutsTheNoteGiven)},
	{Name: "a hand-over in one step leaves the heir's own safe unharmed", Clause: placeStays, check: whole(aHandOverInOneStepLeavesTheHeirsOwnSafeUnharmed)},
	{Name: "a watch sees a hand-over in one step", Clause: inOneStep + " Watch yields the state after each change.", check: whole(aWatchSeesAHandOverInOneStep)},
	{Name: "an heir that gives up its own safe keeps the one handed over in one step", Clause: sharing, check: whole(anHeirThatGivesUpItsOwnSafeKeepsTheOneHandedOverInOneStep)},
	{Name: "an heir that gives up the safe handed over in one step keeps its own", Clause: sharing, check: whole(anHeirThatGivesUpTheSafeHandedOverInOneStepKeepsItsOwn)},
	{Name: "a record handed over in one step lives its time", Clause: renewsNone, check: whole(aRecordHandedOverInOneStepLivesItsTime)},
	{Name: "hand-overs in one step do not keep an heir alive", Clause: renewsNone, check: whole(handOversInOneStepDoNotKeepAnHeirAlive)},
}, oneStepRefusals)

// whole makes a check of one that needs a store which hands over in one step. To any
// other the question, in which nothing is right, is answered so.
func whole(check func(*pair)) func(*trial) {
	return func(t *trial) {
		s, ok := t.s.(kv.HandOver)
		if ok {
			lead := t.pairName()
			_, err := s.HandOver(t.ctx, lead, t.signed(""), lead+":heir", t.signed(""), "")
			ok = !errors.Is(err, errors.ErrUnsupported)
		}
		if !ok {
			t.Skip("the store hands nothing over in one step")
		}
		check(t.pair(ample))
	}
}

// A pair is a succession whose store can hand over in one step.
type pair struct {
	*succession
	whole kv.HandOver
}

// pair sets up a leader and an heir with the given TTL, in two safes that are as near
// to each other as names can bring them: a store that splits its keys by hash tags
// has both in one part.
func (t *trial) pair(ttl time.Duration) *pair {
	t.Helper()
	n := &pair{succession: &succession{t: t, lead: t.pairName(), s: t.open()}}
	n.second = n.lead + ":heir"
	t.cleanLater(n.second)
	n.whole, _ = t.s.(kv.HandOver)
	heir := note.of(t.signed("I am the heir"), "the heir's")
	heir.TTL = ttl
	n.heir = t.create(n.s, n.second, heir)
	n.leader = t.create(t.s, n.lead, note.of(t.signed("I lead"), "the leader's"))
	return n
}

// pairName returns a name as name does, for a safe that another can be near to.
func (t *trial) pairName() string {
	name := "{kvtest-" + rand.Text() + "}"
	t.cleanLater(name)
	return name
}

// refused requires that to hand the leader's safe over is refused with the error.
func (n *pair) refused(old, heir kv.Record, want error) {
	n.t.Helper()
	got, err := n.whole.HandOver(n.t.ctx, n.lead, old, n.second, heir, "handed over")
	require.ErrorIs(n.t, err, want, "it returned %s", describe(got))
}

// hand hands the leader's safe over to the heir as it was created.
func (n *pair) hand() kv.Record {
	n.t.Helper()
	rec, err := n.whole.HandOver(n.t.ctx, n.lead, n.leader, n.second, n.heir, "handed over")
	require.NoError(n.t, err, "hand over %.80q", n.lead)
	require.Equal(n.t, n.heir.Signature, rec.Signature)
	require.Equal(n.t, n.heir.Value, rec.Value)
	require.Equal(n.t, n.heir.Lease, rec.Lease)
	require.Equal(n.t, n.heir.TTL, rec.TTL)
	require.Equal(n.t, "handed over", rec.Note)
	require.Greater(n.t, rec.Token, n.leader.Token)
	require.NotEqual(n.t, n.leader.Revision, rec.Revision)
	n.t.holds(n.lead, rec)
	return rec
}

// unharmed requires that both safes hold what they held, and that both owners can go
// on.
func (n *pair) unharmed() {
	n.t.Helper()
	n.t.holds(n.lead, n.leader)
	n.t.holds(n.second, n.heir)
	n.t.refresh(n.t.s, n.lead, n.leader)
	n.t.refresh(n.s, n.second, n.heir)
}

func aStoreThatHandsNothingOverInOneStepSaysSo(t *trial) {
	s, ok := t.s.(kv.HandOver)
	if !ok {
		return
	}
	n := t.pair(ample)
	_, err := s.HandOver(t.ctx, n.lead, n.leader, n.second, n.heir, "handed over")
	if err == nil {
		return
	}
	require.ErrorIs(t, err, errors.ErrUnsupported)
	n.unharmed()
}

func aHandOverInOneStepReplacesTheRecord(n *pair) {
	t := n.t
	rec := n.hand()
	t.disowned(t.s, n.lead, n.leader)
	t.holds(n.lead, rec)
	// The heir learns of it from the safe alone.
	mine := t.get(n.s, n.lead)
	require.Equal(t, rec, mine)
	mine = t.publish(n.s, n.lead, t.refresh(n.s, n.lead, mine), "I lead now")
	t.holds(n.lead, mine)
	t.delete(n.s, n.lead, mine)
	t.vacant(n.lead)
	require.Greater(t, t.succeed(t.s, n.lead, t.signed("after it")).Token, rec.Token)
}

// The safe goes to and fro between owners that each have a safe of their own.
func tokensGrowAcrossHandOversInOneStep(n *pair) {
	t, tokens := n.t, ascending{t: n.t}
	tokens.add(n.leader)
	for range 5 {
		n.leader = n.hand()
		tokens.add(n.leader)
		n.leader = t.publish(t.s, n.lead, n.leader, "changed")
		n.second += "+"
		t.cleanLater(n.second)
		n.heir = t.create(n.s, n.second, t.signed("the next"))
	}
	t.delete(t.s, n.lead, n.leader)
	tokens.add(t.succeed(t.s, n.lead, t.signed("after them")))
}

func aHandOverInOneStepPutsTheNoteGiven(n *pair) {
	t := n.t
	for _, text := range []string{"handed over", "", `{"rank":7} 🗝`} {
		rec, err := n.whole.HandOver(t.ctx, n.lead, n.leader, n.second, n.heir, text)
		require.NoError(t, err)
		t.carried(note, rec, text)
		t.holds(n.lead, rec)
		t.holds(n.second, n.heir)
		n.leader = t.swap(t.s, n.lead, rec, note.of(t.signed("back again"), "the leader's"))
	}
}

func aHandOverInOneStepLeavesTheHeirsOwnSafeUnharmed(n *pair) {
	t := n.t
	rec := n.hand()
	t.holds(n.second, n.heir)
	require.Equal(t, n.heir, t.refresh(n.s, n.second, n.heir))
	t.publish(n.s, n.second, n.heir, "heir no more")
	t.holds(n.lead, rec)
}

func aWatchSeesAHandOverInOneStep(n *pair) {
	w, own := n.t.watch(n.t.open(), n.lead), n.t.watch(n.t.open(), n.second)
	w.sees(n.leader)
	own.sees(n.heir)
	rec := n.hand()
	require.Equal(n.t, rec, w.next().rec, "there is no vacancy in between")
	n.heir = n.t.publish(n.s, n.second, n.heir, "heir no more")
	own.sees(n.heir)
}

func anHeirThatGivesUpItsOwnSafeKeepsTheOneHandedOverInOneStep(n *pair) {
	rec := n.hand()
	n.t.delete(n.s, n.second, n.heir)
	n.t.vacant(n.second)
	n.t.keeps(n.lead, rec)
}

func anHeirThatGivesUpTheSafeHandedOverInOneStepKeepsItsOwn(n *pair) {
	rec := n.hand()
	n.t.delete(n.s, n.lead, rec)
	n.t.vacant(n.lead)
	n.t.keeps(n.second, n.heir)
}

// Half of the heir's life has passed when the safe is handed over. On a machine that
// is too busy for that, all of it has, and another heir is needed.
func aRecordHandedOverInOneStepLivesItsTime(n *pair) {
	for t := n.t; ; {
		begun := time.Now()
		n = t.pair(t.ttl)
		time.Sleep(t.ttl / 2)
		start := time.Now()
		rec, err := n.whole.HandOver(t.ctx, n.lead, n.leader, n.second, n.heir, "handed over")
		if errors.Is(err, kv.ErrStale) && time.Since(begun) > t.ttl {
			continue // until the trial's context ends
		}
		require.NoError(t, err, "hand over %.80q", n.lead)
		if rec.Lease != "" {
			start = begun
		}
		t.fades(n.lead, rec, start, nil)
		return
	}
}

// An heir that refreshes nothing gets one safe after the other, until its own record
// is gone.
func handOversInOneStepDoNotKeepAnHeirAlive(n *pair) {
	t := n.t
	n = t.pair(t.ttl)
	for deadline := time.Now().Add(t.lifetime(n.heir.TTL).Max + patience); ; time.Sleep(t.ttl / 5) {
		rec, err := n.whole.HandOver(t.ctx, n.lead, n.leader, n.second, n.heir, "handed over")
		if errors.Is(err, kv.ErrStale) {
			return
		}
		require.NoError(t, err)
		require.True(t, time.Now().Before(deadline), "an heir whose TTL was %v has got safes for %v", n.heir.TTL, t.lifetime(n.heir.TTL).Max+patience)
		n.leader, err = t.s.Swap(t.ctx, n.lead, rec, t.signed("back again"))
		if errors.Is(err, kv.ErrStale) { // the heir's lease has ended since
			return
		}
		require.NoError(t, err)
	}
}
