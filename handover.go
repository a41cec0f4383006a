package election

import (
	"context"
	"errors"
	"time"

	"github.com/electkv/election/kv"
)

// handOver puts the heir's signature into the leader's safe, in the place of the
// term's own and in one write, so that the safe is never empty in between. It
// returns the heir's ID, or none if there is nobody to hand over to, or it cannot be
// done: then the safe is to be emptied.
func (t *Term) handOver(ctx context.Context) (heir string, _ error) {
	if t.c.opts.Succession == nil || t.c.office != leadership {
		return "", nil
	}
	for range 2 {
		rec, err := t.next(ctx)
		switch {
		case err != nil:
			t.c.log.Warn("cannot see to whom to hand over", "token", t.token, "error", err)
			return "", nil
		case !t.succeededBy(rec):
			return "", nil
		}
		next := rec
		next.Note = t.will(rec)
		_, err = t.c.store.Swap(ctx, t.c.name, t.Record(), next)
		switch {
		case err == nil:
			return idOf(rec.Signature), nil
		case errors.Is(err, kv.ErrInvalid):
			t.c.log.Warn("cannot hand over", "token", t.token, "error", err)
			return "", nil
		case !errors.Is(err, kv.ErrStale):
			t.asked = true
			return "", err
		}
		if !t.catchUp(ctx) {
			return "", nil
		}
	}
	return "", nil
}

// next reads who is heir. It takes a part of the time that a release has: if the heir's
// safe does not answer, the leader's is to be emptied at least.
func (t *Term) next(ctx context.Context) (kv.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, t.c.pace.attempt/3)
	defer cancel()
	rec, err := t.c.store.Get(ctx, heirSafe(t.c.name))
	if errors.Is(err, kv.ErrVacant) {
		return kv.Record{}, nil
	}
	return rec, err
}

// succeededBy reports whether a record in the heir's safe is that of an heir: not a
// lock of somebody's, a call, or what is left there of ourselves.
func (t *Term) succeededBy(rec kv.Record) bool {
	return rec.Signature != "" && !rec.Foreign && !rec.Permanent && !t.place.signed(rec) &&
		noteOf(rec).Calls == ""
}

// catchUp looks how the term's record stands, and reports whether it is still there.
func (t *Term) catchUp(ctx context.Context) bool {
	old := t.Record()
	rec, err := t.c.store.Get(ctx, t.c.name)
	if err != nil || !rec.Owns(old) {
		return false
	}
	t.update(rec)
	return true
}

// will returns the note that an heir leads with.
func (t *Term) will(rec kv.Record) string {
	mine, theirs := noteOf(t.Record()), noteOf(rec)
	n := note{Rank: theirs.Rank, Heirs: theirs.Heirs, Since: time.Now().UnixMilli()}
	if len(n.Heirs) == 0 {
		n.Heirs = mine.Heirs
	}
	t.mu.Lock()
	cause, lasted := t.cause, t.ended.Sub(t.began)
	t.mu.Unlock()
	stability := t.c.opts.Stability
	failed := lasted < stability && (errors.Is(cause, errUnhealthy) || errors.Is(cause, ErrLost))
	n.Strikes = judge(mine.Strikes, t.c.opts.ID, lasted, stability, failed)
	return n.text()
}
