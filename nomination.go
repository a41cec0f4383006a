package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/kv"
)

// A nomination makes one candidate the heir. The leader puts a call into the heir's
// safe, in the place of whoever is there; only the candidate that is called
// displaces that, and while the leader leads nobody displaces the called one.
type nomination struct {
	*Candidate // as it stands for the heir's safe

	id      string    // who is called
	call    kv.Record // the call
	token   uint64    // of the term of which the call is
	answer  kv.Record // the record of the one who is called, once it has answered
	trouble error     // why the call may not be there
	began   time.Time
}

func newNomination(t *Term, id string) *nomination {
	under := machine.LeaderOf(t.Record())
	n := machine.Note{Under: &under, Calls: id}
	return &nomination{
		Candidate: t.c.beside(heirSafe(t.c.name), "heir"),
		id:        id,
		call:      kv.Record{Signature: newSignature(t.c.opts.ID), TTL: t.c.opts.TTL, Note: n.Text()},
		token:     t.token,
		began:     time.Now(),
	}
}

// run calls until the one who is called is the heir, or ctx ends. What it has asked of
// the store by then it gives until settling ends to be answered: a call that arrives
// when nobody waits for it keeps the heir's safe from everybody.
func (s *nomination) run(ctx, settling context.Context) error {
	latest, stop := s.sightings(ctx)
	defer stop()
	retry := s.pace.backoff()
	again := time.NewTimer(0)
	again.Stop()
	defer again.Stop()
	var seen sighting
	for {
		select {
		case <-ctx.Done():
			return s.unanswered()
		case seen = <-latest:
		case <-again.C:
		}
		if seen.err == nil && s.answered(seen.rec) {
			return nil
		}
		if ctx.Err() != nil {
			return s.unanswered()
		}
		err := s.put(settling, seen)
		if errors.Is(err, kv.ErrInvalid) {
			return err
		}
		if err != nil {
			again.Reset(retry.pause())
		}
	}
}

// put puts the call in the place of what was seen. If that is not there any more, a
// watch tells what is.
func (s *nomination) put(ctx context.Context, seen sighting) error {
	attempt, cancel := context.WithTimeout(ctx, s.pace.Attempt)
	defer cancel()
	err := seen.err
	switch {
	case errors.Is(err, kv.ErrVacant):
		_, err = s.store.Create(attempt, s.name, s.call)
	case err == nil && seen.rec.Signature == s.call.Signature:
	case err == nil && (seen.rec.Foreign || seen.rec.Permanent):
		err = errors.New("the heir's safe holds a record that no heir has written")
	case err == nil:
		_, err = s.store.Swap(attempt, s.name, seen.rec, s.call)
	}
	switch {
	case err == nil, errors.Is(err, kv.ErrHeld), errors.Is(err, kv.ErrStale):
		s.trouble = nil
	case ctx.Err() == nil:
		s.trouble = err
	}
	return err
}

// answered reports whether a record in the heir's safe is the answer of the one who
// is called: that it was heir before says nothing of whether it is alive.
func (s *nomination) answered(rec kv.Record) bool {
	n := machine.NoteOf(rec)
	if rec.Foreign || machine.IDOf(rec.Signature) != s.id || n.Calls != "" || n.Called != s.token {
		return false
	}
	s.answer = rec
	return true
}

// recall ends a call that was not answered in time. It reports whether it was after
// all; else nobody is preferred any longer. Late is when whoever wanted it does not
// wait for an answer any more.
func (s *nomination) recall(ctx context.Context, late bool) (answered bool) {
	err := s.retry(ctx, func(ctx context.Context) error {
		rec, err := s.store.Get(ctx, s.name)
		switch {
		case errors.Is(err, kv.ErrVacant):
			return nil
		case err != nil:
			return err
		}
		answered = s.answered(rec)
		if rec.Signature != s.call.Signature && (!answered || !late) {
			return nil
		}
		if err = s.store.Delete(ctx, s.name, rec); errors.Is(err, kv.ErrStale) {
			return fmt.Errorf("the call was answered just now: %w", err) // look again
		}
		return err
	})
	if err != nil {
		s.log.WarnContext(ctx, "cannot tell whether a call for an heir is left in the store until it expires", "error", err)
	}
	return answered
}

// unanswered returns why there is no heir as called.
func (s *nomination) unanswered() error {
	if s.trouble != nil {
		return fmt.Errorf("%w: %w", ErrNoHeir, s.trouble)
	}
	after := time.Since(s.began).Round(time.Millisecond)
	return fmt.Errorf("%w: %q did not answer for %v (is it a candidate?)", ErrNoHeir, s.id, after)
}
