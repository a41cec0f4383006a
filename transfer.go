package election

import (
	"context"
	"errors"
	"fmt"

	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/kv"
)

// Transfer hands the leadership over to the candidate with this ID. First it calls
// that candidate, which becomes the heir, or shows that it is alive if it is the heir
// already; meanwhile there is no heir. If the candidate does not answer within a TTL and
// ctx, the error matches [ErrNoHeir], and the term goes on. A leader without an heir
// returns [ErrNoSuccession], and one that is to hand over to itself an error. If the term has
// ended, Transfer returns why. One transfer is tried at a time, and ctx also bounds the wait
// for an earlier one.
//
// Then the term ends as by [Term.Resign]. Under Run, the safe is handed over when lead
// has returned. Otherwise it is handed over now, so call Transfer when the work has
// stopped. If the heir vanishes before that, the safe goes to the next heir, or becomes
// vacant, as when a leader resigns.
func (t *Term) Transfer(ctx context.Context, id string) error {
	if _, err := t.nominate(ctx, id); err != nil {
		return fmt.Errorf("election: transfer to %q: %w", id, err)
	}
	return t.resign(ctx, handsOverTo(id), true)
}

func handsOverTo(id string) error {
	return fmt.Errorf("%w: hands over to %q", ErrResigned, id)
}

// SetHeirs publishes the IDs of the candidates that should follow this leader, in
// order, in place of Options.Heirs. Its errors are those of [Term.Proclaim].
func (t *Term) SetHeirs(ctx context.Context, ids ...string) error {
	switch {
	case t.c.noHeir(t.c.entry):
		return ErrNoSuccession
	case t.c.opts.Succession == nil:
		return errHeedless
	}
	if err := checkHeirs(ids); err != nil {
		return err
	}
	err := t.publish(ctx, func(text *machine.Text) {
		n := machine.NoteOf(kv.Record{Note: text.Note})
		n.Heirs = ids
		text.Note = n.Text()
	})
	if err != nil && t.Err() == nil {
		err = fmt.Errorf("election: set heirs: %w", err)
	}
	return err
}

// ErrNoSuccession means that a leader without an heir (Options.NoHeir) was asked to hand
// over to a candidate, or to take a list of heirs.
var ErrNoSuccession = errors.New("election: the leader has no heir (Options.NoHeir, TryCampaign, or a store in which candidates wait in line)")

// nominate calls the candidate with this ID to be the heir. It returns the heir's record
// when that has answered.
func (t *Term) nominate(ctx context.Context, id string) (heir kv.Record, _ error) {
	if t.c.noHeir(t.c.entry) {
		return heir, ErrNoSuccession
	}
	if err := checkText("ID", id); err != nil {
		return heir, err
	}
	if id == t.c.opts.ID {
		return heir, errors.New("that is the leader itself")
	}
	if err := t.calling.lock(ctx, &t.mu); err != nil { // one call at a time
		return heir, err
	}
	defer t.calling.unlock()
	waiting, cancel := context.WithTimeout(ctx, t.c.opts.TTL)
	defer cancel()
	t.boundCall(cancel)
	defer t.boundCall(nil)
	if err := t.Err(); err != nil {
		return heir, err
	}
	s := newNomination(t, id)
	settling, settled := outlasting(waiting, t.c.pace.Attempt/3) // a release waits for this call
	defer settled()
	err := s.run(waiting, settling)
	cancel()
	if err == nil || s.recall(settling, ctx.Err() != nil) && ctx.Err() == nil && t.Err() == nil {
		return s.answer, nil
	}
	if ended := t.Err(); ended != nil {
		return heir, ended
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", err, causeOf(ctx))
	}
	return heir, err
}
