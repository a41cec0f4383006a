package linear_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/internal/linear"
	"github.com/electkv/election/kv"
)

// The flaws of a store whose records share leases.
const (
	movesToNewToken      flaw = "a batch changes the token"
	movesUnasked         flaw = "a batch changes the revision of what may not share a lease"
	movesAlone           flaw = "a refresh changes the revision of what may not share a lease"
	movesUnseen          flaw = "a record changes its revision when nobody refreshes it"
	movesBack            flaw = "what moves gets the revision that it had before"
	swapsBeforeMove      flaw = "a swap is taken at the revision before the move"
	movesInVain          flaw = "a move is acknowledged and lost"
	movesOldValue        flaw = "a move puts the value back that was there before"
	movesToShorterLife   flaw = "what moves fades with the lease that it has come to"
	bringsBackTogether   flaw = "a batch brings a deleted record back"
	provesOneByAnother   flaw = "the first record of a batch proves the others"
	refusesTheMovedOwner flaw = "what has moved is no longer its owner's"
)

func TestEachFlawOfSharingIsFound(t *testing.T) {
	crowd := ample
	crowd.Share = true
	for _, f := range []flaw{
		movesToNewToken, movesUnasked, movesAlone, movesUnseen, movesBack, swapsBeforeMove, movesInVain, movesOldValue,
		bringsBackTogether, provesOneByAnother, refusesTheMovedOwner,
	} {
		t.Run(string(f), func(t *testing.T) { requireFound(t, f, crowd) })
	}
	crowd = brief
	crowd.Share = true
	t.Run(string(movesToShorterLife), func(t *testing.T) { requireFound(t, movesToShorterLife, crowd) })
}

func TestRecordsThatShareLeasesAreFoundCorrect(t *testing.T) {
	for name, open := range map[string]func() kv.Store{
		"a store with batches":    func() kv.Store { return newNotebook("") },
		"a store that knows none": func() kv.Store { return memkv.New() },
	} {
		for _, crowd := range []linear.Crowd{ample, brief} {
			for seed := range uint64(4) {
				crowd.Seed, crowd.Share, crowd.Whole = seed, true, seed%2 == 1
				history := record(t, crowd, open)
				verdict := check(t, history)
				require.Equal(t, linear.Kept, verdict.Result, "%s, seed %d: %q", name, seed, verdict.Names)
				if _, moves := open().(*notebook); moves {
					require.NotZero(t, moved(history))
				}
				requireVariety(t, history)
			}
		}
	}
}

func TestHistoriesOfMoves(t *testing.T) {
	a, moved, again := rec("a", "1", 1, 1), rec("a", "1", 1, 2), rec("a", "1", 1, 3)
	next, b := rec("a", "2", 1, 4), rec("b", "2", 2, 5)
	const done, unknown, stale = linear.Done, linear.Unknown, linear.Stale
	for sentence, history := range map[string][]linear.Operation{
		"a batch moves a record": {
			at(1, 0, 1, create(a, done)), at(1, 2, 3, together(a, moved, true, done)), at(2, 4, 5, get(moved)),
			at(2, 6, 7, swap(a, next, stale)), at(2, 8, 9, swap(moved, b, done)),
		},
		"a move is seen before its batch has returned": {
			at(1, 0, 1, create(a, done)), at(1, 2, 9, together(a, moved, true, done)), at(2, 4, 5, get(a)), at(2, 6, 7, get(moved)),
		},
		"a batch moves a record twice": {
			at(1, 0, 1, create(a, done)), at(1, 2, 9, together(a, again, true, done)), at(2, 4, 5, get(moved)), at(2, 6, 7, get(again)),
		},
		"a batch does not move what it may": {
			at(1, 0, 1, create(a, done)), at(1, 2, 3, together(a, a, true, done)), at(2, 4, 5, swap(a, b, done)),
		},
		"a move comes late": {
			at(1, 0, 1, create(a, done)), at(1, 2, 3, together(a, nil, true, unknown)), at(2, 4, 5, get(a)), at(2, 16, 17, get(moved)),
			at(2, 18, 19, swap(a, next, stale)), at(1, 20, 21, refresh(moved, done)),
		},
		"a move comes late that only the refusal shows": {
			at(1, 0, 1, create(a, done)), at(1, 2, 3, together(a, nil, true, unknown)), at(2, 4, 5, get(a)), at(2, 6, 7, swap(a, b, stale)),
			at(1, 8, 9, remove(a, done)),
		},
		"a move never comes": {
			at(1, 0, 1, create(a, done)), at(1, 2, 3, together(a, nil, true, unknown)), at(2, 4, 5, swap(a, b, done)), at(1, 6, 7, refresh(a, stale)),
		},
		"a move was begun beside a batch that was answered": {
			at(1, 0, 1, create(a, done)), at(1, 2, 3, together(a, a, true, done)), at(2, 4, 5, get(a)), at(2, 6, 7, get(moved)),
			at(1, 8, 9, together(a, moved, true, done)),
		},
		"the same, and only the refusal shows it": {
			at(1, 0, 1, create(a, done)), at(1, 2, 3, together(a, a, true, done)), at(2, 4, 5, swap(a, b, stale)), at(1, 6, 7, remove(a, done)),
		},
		"a record moves with any refresh that comes later": {
			at(1, 0, 1, create(a, done)), at(1, 2, 3, together(a, a, true, done)), at(1, 4, 5, together(a, moved, false, done)),
		},
		"a record moves that shares its lease from the start": {
			at(1, 0, 1, createShared(a)), at(1, 2, 3, together(a, moved, false, done)), at(2, 4, 5, get(moved)),
		},
		"a publication of unknown outcome moves on": {
			at(1, 0, 1, create(a, done)), at(2, 2, 3, swap(a, next, unknown)), at(1, 4, 20, together(a, rec("a", "2", 1, 6), true, done)),
			at(2, 6, 7, get(next)), at(2, 8, 9, get(rec("a", "2", 1, 6))),
		},
		"a publication of unknown outcome moves on before the sight of it returns": {
			at(1, 0, 1, create(a, done)), at(2, 2, 3, swap(a, next, unknown)), at(1, 4, 5, together(a, rec("a", "2", 1, 6), true, done)),
			at(2, 4, 9, get(next)),
		},
	} {
		require.Equal(t, linear.Kept, check(t, history).Result, sentence)
	}
	for sentence, history := range map[string][]linear.Operation{
		"a batch changes the revision of what may not share": {
			at(1, 0, 1, create(a, done)), at(1, 2, 3, together(a, moved, false, done)),
		},
		"a refresh changes the revision of what may not share": {
			at(1, 0, 1, create(a, done)), at(1, 2, 3, op(refresh(a, done), moved)),
		},
		"a refresh moves what may share only later": {
			at(1, 0, 1, create(a, done)), at(1, 2, 3, op(refresh(a, done), moved)), at(1, 4, 5, together(moved, moved, true, done)),
		},
		"a batch changes the token": {
			at(1, 0, 1, create(a, done)), at(1, 2, 3, together(a, rec("a", "1", 2, 2), true, done)),
		},
		"a batch changes the value": {
			at(1, 0, 1, create(a, done)), at(1, 2, 3, together(a, rec("a", "2", 1, 2), true, done)),
		},
		"a swap is taken at the revision before the move": {
			at(1, 0, 1, create(a, done)), at(1, 2, 3, together(a, moved, true, done)), at(2, 4, 5, swap(a, next, done)),
		},
		"the same, and it comes late": {
			at(1, 0, 1, create(a, done)), at(1, 2, 3, together(a, moved, true, done)), at(2, 4, 5, swap(a, next, unknown)), at(2, 6, 7, get(next)),
		},
		"a swap is taken at a revision that was left unseen": {
			at(1, 0, 1, create(a, done)), at(1, 2, 3, together(a, nil, true, unknown)), at(2, 4, 5, swap(a, next, stale)), at(2, 6, 7, swap(a, b, done)),
		},
		"a record moves before its batch": {
			at(1, 0, 1, create(a, done)), at(2, 2, 3, get(moved)), at(1, 4, 5, together(a, moved, true, done)),
		},
		"a record moves twice after its batch": {
			at(1, 0, 1, create(a, done)), at(1, 2, 3, together(a, a, true, done)), at(2, 4, 5, get(moved)), at(2, 6, 7, get(again)),
		},
		"a record that shares its lease moves without a refresh": {
			at(1, 0, 1, createShared(a)), at(2, 2, 3, get(moved)),
		},
		"a refused swap has its revision nevertheless": {
			at(1, 0, 1, create(a, done)), at(1, 2, 3, together(a, a, true, done)), at(2, 4, 5, swap(a, next, stale)), at(2, 6, 7, get(a)),
		},
		"a record moves back": {
			at(1, 0, 1, create(a, done)), at(1, 2, 3, together(a, moved, true, done)), at(1, 4, 5, together(moved, a, true, done)),
		},
		"a refused batch moves": {
			at(1, 0, 1, create(a, done)), at(1, 2, 3, remove(a, done)), at(1, 4, 5, together(a, nil, true, stale)), at(2, 6, 7, get(moved)),
		},
		"a move that is acknowledged is gone": {
			at(1, 0, 1, create(a, done)), at(1, 2, 3, together(a, moved, true, done)), at(2, 4, 5, get(a)),
		},
		"what was told of an unknown publication cannot both be the first": {
			at(1, 0, 1, create(a, done)), at(2, 2, 3, swap(a, next, unknown)), at(2, 6, 7, get(next)), at(2, 8, 9, get(rec("a", "2", 1, 6))),
		},
		"what has moved fades by the time of before": {
			at(1, 0, 10, create(a, done)), at(1, 50, 60, together(a, moved, true, done)), at(2, 120, 149, get(nil)),
		},
	} {
		require.Equal(t, linear.Broken, check(t, history).Result, sentence)
	}
}

// op is an operation that was told something else.
func op(of linear.Operation, got *linear.Record) linear.Operation {
	of.Got = got
	return of
}

// moved counts the refreshes that have told of another revision than the one given.
func moved(history []linear.Operation) int {
	n := 0
	for _, op := range history {
		if op.Kind == linear.Refresh && op.Outcome == linear.Done && op.Got.Revision != op.Given.Revision {
			n++
		}
	}
	return n
}

// RefreshAll implements [kv.Batch].
func (b *notebook) RefreshAll(_ context.Context, records []kv.Held, tell func(int, kv.Record, error)) {
	proved := false
	for i, r := range records {
		rec, err := b.refresh(r, proved)
		proved = err == nil
		tell(i, rec, err)
	}
}

func (b *notebook) refresh(r kv.Held, proved bool) (kv.Record, error) {
	p, done := b.open(r.Name)
	defer done()
	switch {
	case b.flaw == provesOneByAnother && proved:
		return r.Record, nil
	case b.flaw == bringsBackTogether && p.rec == (kv.Record{}):
		p.rec = r.Record
	case !p.rec.Owns(r.Record), b.flaw == refusesTheMovedOwner && p.rec.Revision != r.Record.Revision:
		return kv.Record{}, kv.ErrStale
	}
	p.expires = time.Now().Add(p.rec.TTL)
	p.shared = p.shared || r.Share
	p = b.move(p, b.last[r.Name].rec, b.flaw == movesUnasked)
	if b.flaw != movesInVain {
		b.put(r.Name, p)
	}
	return p.rec, nil
}

// move moves a record that may share a lease, most of the time, and one that asks for it.
func (b *notebook) move(p page, before kv.Record, asks bool) page {
	if !asks && (!p.shared || b.calls%3 == 0) {
		return p
	}
	b.count++
	from := p.rec.Revision
	p.rec.Revision = b.count
	switch {
	case b.flaw == movesToNewToken:
		p.drawn++
		p.rec.Token = p.drawn
	case b.flaw == movesBack && p.from != 0:
		p.rec.Revision = p.from
	case b.flaw == movesOldValue && before.Owns(p.rec):
		p.rec.Value, p.rec.Note = before.Value, before.Note
	case b.flaw == movesToShorterLife:
		p.expires = time.Now().Add(p.rec.TTL / 4)
	}
	p.from = from
	return p
}

// A lease that was kept alive a moment before has so much less left.
func TestARecordThatSharesItsLeaseMayFadeAnEighthSooner(t *testing.T) {
	const done, unknown = linear.Done, linear.Unknown
	left := func(ms int) *linear.Record {
		r := rec("a", "1", 1, 1)
		r.TTL = time.Duration(ms) * time.Millisecond
		return r
	}
	shared := func(op linear.Operation) linear.Operation {
		given := *rec("a", "1", 0, 0)
		given.Shared = true
		op.Given = &given
		return op
	}
	for sentence, history := range map[string][]linear.Operation{
		"it is told": {at(1, 0, 1, shared(create(left(88), done))), at(2, 80, 81, get(left(88))), at(2, 88, 89, get(nil))},
		"it is not":  {at(1, 0, 1, shared(create(left(88), unknown))), at(2, 80, 81, get(left(88))), at(2, 88, 89, get(nil))},
	} {
		require.Equal(t, linear.Kept, check(t, history).Result, sentence)
	}
	for sentence, history := range map[string][]linear.Operation{
		"sooner":          {at(1, 0, 1, shared(create(left(87), done)))},
		"before its time": {at(1, 0, 1, shared(create(left(95), done))), at(2, 88, 94, get(nil))},
		"it may not":      {at(1, 0, 1, create(left(95), done))},
		"nor if unknown":  {at(1, 0, 1, create(left(88), unknown)), at(2, 80, 81, get(left(88))), at(2, 88, 89, get(nil))},
	} {
		for i := range history {
			if history[i].Kind == linear.Create && !history[i].Given.Shared {
				history[i].Given = rec("a", "1", 0, 0)
			}
		}
		require.Equal(t, linear.Broken, check(t, history).Result, sentence)
	}
}
