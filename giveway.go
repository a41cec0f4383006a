package election

import (
	"context"
	"errors"
	"fmt"

	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/kv"
)

// call asks the heir whether it is alive, and ends the term if it is: a leader need not give
// way to an heir that is dead though its record has not expired.
func (c *campaign) call(heir kv.Record) {
	id := machine.IDOf(heir.Signature)
	cause := fmt.Errorf("%w: gives way to %q", ErrResigned, id)
	if most := c.opts.MaxTerm; most > 0 && c.clock.now().Mono-c.state.Began.Mono >= most {
		cause = fmt.Errorf("%w: has led for as long as a term may last", ErrResigned)
	}
	t := c.term
	t.help(func(ctx context.Context) { t.giveWay(ctx, heir, id, cause) })
}

// giveWay does so. If the candidate was restarted, and answers with a new signature, it has
// not been heir for long, and is treated like any other.
func (t *Term) giveWay(ctx context.Context, heir kv.Record, id string, cause error) {
	rec, err := t.nominate(ctx, id)
	if err == nil && machine.NoteOf(rec).Formerly != heir.Signature {
		err = errors.New("it was restarted meanwhile")
		t.removeHeir(ctx, rec)
	}
	if err == nil {
		t.end(cause, ReasonGaveWay, true)
		return
	}
	if t.Err() == nil {
		t.c.log.Warn("the heir does not take over", "event", "heir_silent", "heir", id, "error", err)
	}
	t.c.post(&machine.Event{Kind: machine.Silent})
}

// removeHeir removes the heir's record.
func (t *Term) removeHeir(ctx context.Context, rec kv.Record) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.c.pace.Attempt/3)
	defer cancel()
	if err := gone(t.c.observed().Delete(ctx, heirSafe(t.c.name), rec)); err != nil {
		t.c.log.Warn("cannot tell whether the heir's place is open again", "event", "heir_unclear", "error", err)
	}
}

// gone returns the error of a delete, nil if there is nothing to delete any more.
func gone(err error) error {
	if errors.Is(err, kv.ErrStale) {
		return nil
	}
	return err
}
