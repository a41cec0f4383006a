package linear_test

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/linear"
	"github.com/electkv/election/internal/mistake"
	"github.com/electkv/election/kv"
)

// A flaw is what a store does wrong, in a sentence.
type flaw string

// The flaws. The tests that follow find each of them.
const (
	deletesAnything      flaw = "a delete empties the safe whoever holds it"
	deletesHeld          flaw = "a delete is refused by a vacant safe alone"
	deletesTwice         flaw = "a delete is sent twice, and the second answer counts"
	createsTwice         flaw = "a create is sent twice, and the second answer counts"
	createsLater         flaw = "a create is carried out again, long after it was answered"
	overwrites           flaw = "a create overwrites what is there"
	refusesVacant        flaw = "a create is refused by a vacant safe"
	swapsAtAnyRevision   flaw = "a swap ignores the revision"
	swapsForAnybody      flaw = "a swap ignores whose record it is"
	swapsWithoutToken    flaw = "a hand-over keeps the token"
	publishesNewToken    flaw = "a publication changes the token"
	publishesInVain      flaw = "a publication is acknowledged and lost"
	notesInVain          flaw = "a publication of a note alone is acknowledged and lost"
	losesNotes           flaw = "a refresh answers without the note"
	keepsRevision        flaw = "a publication keeps the revision"
	mixesValues          flaw = "a swap answers with the value that it replaced"
	refreshesAnything    flaw = "a refresh is answered without a look at the record"
	refreshesInVain      flaw = "a refresh does not lengthen the record's life"
	refusesOwner         flaw = "a refresh is refused though the safe holds the record"
	bringsBack           flaw = "a refresh brings a deleted record back"
	resetsTokens         flaw = "tokens start anew with each vacancy"
	readsOldState        flaw = "a read shows the state before the last write"
	readsNothing         flaw = "a read finds nothing where something is"
	fadesEarly           flaw = "a record fades after half its TTL"
	forgetsWrites        flaw = "a restart forgets the latest writes"
	shortensByPublishing flaw = "a publication starts a shorter life"
	acknowledgesRefused  flaw = "a refused create is acknowledged"
	handsToAnybody       flaw = "a hand-over in one step ignores what the heir's safe holds"
	handsFromAnybody     flaw = "a hand-over in one step ignores what the safe holds"
	handsInVain          flaw = "a hand-over in one step is acknowledged and lost"
	handsWithoutToken    flaw = "a hand-over in one step keeps the token"
	handsWhenRefused     flaw = "a hand-over in one step is refused and carried out"
)

// A notebook is a store that can be flawed, in a few lines. Without a flaw it is
// a correct one.
type notebook struct {
	flaw flaw

	mu    sync.Mutex
	count uint64
	calls int
	pages map[string]page
	saved map[string]page // what a restart finds
	last  map[string]page // before the latest write
}

type page struct {
	rec     kv.Record
	expires time.Time
	drawn   uint64 // tokens so far
	shared  bool   // it may share a lease
	from    uint64 // the revision before the last move
}

func newNotebook(f flaw) *notebook {
	return &notebook{flaw: f, pages: map[string]page{}, saved: map[string]page{}, last: map[string]page{}}
}

// is reports whether the flaw is there, and strikes at this call: at one in n.
func (b *notebook) is(f flaw, n int) bool { return b.flaw == f && b.calls%n == 0 }

func (b *notebook) open(name string) (page, func()) {
	b.mu.Lock()
	b.calls++
	return b.at(name), b.mu.Unlock
}

func (b *notebook) at(name string) page {
	p := b.pages[name]
	if p.rec != (kv.Record{}) && !time.Now().Before(p.expires) {
		p.rec = kv.Record{}
	}
	return p
}

func (b *notebook) put(name string, p page) {
	b.last[name] = b.pages[name]
	b.pages[name] = p
	if b.is(forgetsWrites, 11) {
		b.pages[name] = b.saved[name]
	} else if b.calls%5 == 0 {
		b.saved[name] = p
	}
}

func (b *notebook) sign(p page, rec kv.Record) page {
	b.count++
	p.drawn++
	if b.flaw == resetsTokens && p.rec == (kv.Record{}) {
		p.drawn = 1
	}
	p.shared, p.from = rec.Shared, 0
	p.rec = kv.Record{Signature: rec.Signature, Value: rec.Value, Note: rec.Note, TTL: rec.TTL, Token: p.drawn, Revision: b.count}
	p.expires = time.Now().Add(rec.TTL)
	if b.flaw == fadesEarly {
		p.expires = time.Now().Add(rec.TTL / 2)
	}
	return p
}

func (b *notebook) Create(_ context.Context, name string, rec kv.Record) (kv.Record, error) {
	p, done := b.open(name)
	defer done()
	switch {
	case b.is(acknowledgesRefused, 5) && p.rec != (kv.Record{}):
		return b.sign(p, rec).rec, nil
	case p.rec != (kv.Record{}) && !b.is(overwrites, 5), b.is(refusesVacant, 5):
		return kv.Record{}, kv.ErrHeld
	}
	p = b.sign(p, rec)
	b.put(name, p)
	if b.is(createsTwice, 5) {
		return kv.Record{}, kv.ErrHeld
	}
	if b.flaw == createsLater {
		time.AfterFunc(10*time.Millisecond, func() {
			late, done := b.open(name)
			defer done()
			if late.rec == (kv.Record{}) {
				b.put(name, b.sign(late, rec))
			}
		})
	}
	return p.rec, nil
}

func (b *notebook) Swap(_ context.Context, name string, old, next kv.Record) (kv.Record, error) {
	p, done := b.open(name)
	defer done()
	owns := p.rec.Owns(old) || b.is(swapsForAnybody, 5) && p.rec != (kv.Record{})
	at := p.rec.Revision == old.Revision || b.is(swapsAtAnyRevision, 2) || b.flaw == swapsForAnybody ||
		b.flaw == swapsBeforeMove && p.from == old.Revision
	if !owns || !at {
		return kv.Record{}, kv.ErrStale
	}
	before := p.rec
	if next.Signature != old.Signature {
		p = b.sign(p, next)
		if b.is(swapsWithoutToken, 5) {
			p.rec.Token = before.Token
		}
	} else {
		b.count++
		p.rec.Value, p.rec.Note, p.rec.Revision = next.Value, next.Note, b.count
		switch b.flaw {
		case keepsRevision:
			p.rec.Revision = before.Revision
		case publishesNewToken:
			p.drawn++
			p.rec.Token = p.drawn
		case shortensByPublishing:
			p.expires = time.Now().Add(p.rec.TTL / 4)
		}
	}
	if b.flaw == notesInVain && next.Signature == old.Signature && next.Value == before.Value {
		return p.rec, nil
	}
	if !b.is(publishesInVain, 7) {
		b.put(name, p)
	}
	if b.is(mixesValues, 7) {
		p.rec.Value = before.Value
	}
	return p.rec, nil
}

func (b *notebook) HandOver(_ context.Context, name string, old kv.Record, place string, heir kv.Record, note string) (kv.Record, error) {
	p, done := b.open(name)
	defer done()
	own := b.at(place)
	at := p.rec.Owns(old) && p.rec.Revision == old.Revision || b.flaw == handsFromAnybody && p.rec != (kv.Record{})
	stands := own.rec.Owns(heir) && own.rec.Revision == heir.Revision || b.flaw == handsToAnybody
	if !at || !stands {
		return kv.Record{}, kv.ErrStale
	}
	next, before := heir, p.rec
	next.Note = note
	p = b.sign(p, next)
	if b.flaw == handsWithoutToken {
		p.rec.Token = before.Token
	}
	if b.flaw != handsInVain {
		b.put(name, p)
	}
	if b.flaw == handsWhenRefused {
		return kv.Record{}, kv.ErrStale
	}
	return p.rec, nil
}

func (b *notebook) Refresh(_ context.Context, name string, rec kv.Record) (kv.Record, error) {
	p, done := b.open(name)
	defer done()
	switch {
	case b.flaw == refreshesAnything:
		return rec, nil
	case b.flaw == bringsBack && p.rec == (kv.Record{}):
		p.rec = rec
	case !p.rec.Owns(rec), b.is(refusesOwner, 7):
		return kv.Record{}, kv.ErrStale
	}
	if b.flaw != refreshesInVain {
		p.expires = time.Now().Add(p.rec.TTL)
	}
	p = b.move(p, p.rec, b.flaw == movesAlone)
	b.put(name, p)
	if b.is(losesNotes, 7) {
		p.rec.Note = ""
	}
	return p.rec, nil
}

func (b *notebook) Delete(_ context.Context, name string, rec kv.Record) error {
	p, done := b.open(name)
	defer done()
	if !p.rec.Owns(rec) && b.flaw != deletesAnything {
		if b.flaw != deletesHeld || p.rec == (kv.Record{}) {
			return kv.ErrStale
		}
	}
	p.rec = kv.Record{}
	b.put(name, p)
	if b.is(deletesTwice, 5) {
		return kv.ErrStale
	}
	return nil
}

func (b *notebook) Get(_ context.Context, name string) (kv.Record, error) {
	p, done := b.open(name)
	defer done()
	if b.is(readsOldState, 7) {
		p = b.last[name]
	}
	if b.is(movesUnseen, 7) && p.shared {
		p = b.move(p, p.rec, true)
		b.put(name, p)
	}
	if p.rec == (kv.Record{}) || b.is(readsNothing, 7) {
		return kv.Record{}, kv.ErrVacant
	}
	return p.rec, nil
}

func (b *notebook) Watch(context.Context, string) iter.Seq2[kv.Record, error] {
	panic("nobody watches here")
}

func (b *notebook) Lifetime(ttl time.Duration) (kv.Lifetime, error) {
	return kv.Lifetime{Min: ttl, Max: ttl}, nil
}

func TestEachFlawOfAStoreIsFound(t *testing.T) {
	flaws := []flaw{
		deletesAnything, deletesHeld, deletesTwice, createsTwice, createsLater, overwrites,
		refusesVacant, swapsAtAnyRevision, swapsForAnybody, swapsWithoutToken, publishesNewToken,
		publishesInVain, notesInVain, losesNotes, keepsRevision, mixesValues, refreshesAnything, refusesOwner, bringsBack,
		resetsTokens, readsOldState, readsNothing, forgetsWrites, acknowledgesRefused,
	}
	for _, f := range flaws {
		t.Run(string(f), func(t *testing.T) { requireFound(t, f, ample) })
	}
}

func TestEachFlawInARecordsLifeIsFound(t *testing.T) {
	for _, f := range []flaw{refreshesInVain, fadesEarly, shortensByPublishing, bringsBack, resetsTokens} {
		t.Run(string(f), func(t *testing.T) { requireFound(t, f, brief) })
	}
}

func TestEachFlawOfAHandOverInOneStepIsFound(t *testing.T) {
	crowd := ample
	crowd.Whole = true
	for _, f := range []flaw{handsToAnybody, handsFromAnybody, handsInVain, handsWithoutToken, handsWhenRefused} {
		t.Run(string(f), func(t *testing.T) { requireFound(t, f, crowd) })
	}
	verdict := check(t, record(t, crowd, func() kv.Store { return newNotebook("") }))
	require.Equal(t, linear.Kept, verdict.Result, "%q", verdict.Names)
}

func requireFound(t *testing.T, f flaw, crowd linear.Crowd) {
	t.Helper()
	crowd.Seed = 1
	if !crowd.Share { // what is wrong with moves shows more rarely
		crowd.Ops = 1000
	}
	verdict := check(t, record(t, crowd, func() kv.Store { return newNotebook(f) }))
	if verdict.Result != linear.Broken {
		mistake.Missed(t, fmt.Sprintf("the history of %d safes is %s", verdict.Safes, verdict.Result))
	}
	t.Logf("found in %d of %d safes", len(verdict.Names), verdict.Safes)
}

// What finds the flaws finds none where there is none.
func TestTheNotebookIsCorrectWithoutAFlaw(t *testing.T) {
	for _, crowd := range []linear.Crowd{ample, brief} {
		for seed := range uint64(4) {
			crowd.Seed = seed
			verdict := check(t, record(t, crowd, func() kv.Store { return newNotebook("") }))
			require.Equal(t, linear.Kept, verdict.Result, "seed %d: %q", seed, verdict.Names)
		}
	}
}
