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
// safe, in the place of any record there. Only the candidate that is called
// displaces the call, and while the leader leads, no other displaces that candidate.
type nomination struct {
	*Candidate // as it stands for the heir's safe

	store   kv.Store  // as the term's campaign asks it
	id      string    // of the candidate that is called
	call    kv.Record // the call
	token   uint64    // of the term that the call belongs to
	answer  kv.Record // the record of the candidate that is called, once it has answered
	trouble error     // why the call may not be there
	began   time.Time
}

func newNomination(t *Term, id string) *nomination {
	under := machine.LeaderOf(t.Record())
	n := machine.Note{Under: &under, Calls: id}
	return &nomination{
		Candidate: t.c.beside(heirSafe(t.c.name), "heir"),
		store:     t.c.observed(),
		id:        id,
		call:      kv.Record{Signature: newSignature(t.c.opts.ID), TTL: t.c.opts.TTL, Note: n.Text()},
		token:     t.token,
		began:     time.Now(),
	}
}

// run calls until the candidate that is called is the heir, or ctx ends. It waits for
// requests that are on their way by then until settling ends: a call that arrives
// after its leader has stopped waiting keeps every candidate out of the heir's safe.
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

// put puts the call in the place of the record that was seen. If that is not there any
// more, a watch shows what is.
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

// answered reports whether a record in the heir's safe is the answer of the candidate that
// is called: that it was heir before does not show that it is alive.
func (s *nomination) answered(rec kv.Record) bool {
	n := machine.NoteOf(rec)
	if rec.Foreign || machine.IDOf(rec.Signature) != s.id || n.Calls != "" || n.Called != s.token {
		return false
	}
	s.answer = rec
	return true
}

// recall ends a call that was not answered in time. It reports whether it was answered after
// all. If not, no candidate is preferred any longer. Late is the time from which the caller
// does not wait for an answer any more.
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
		s.log.WarnContext(ctx, "cannot tell whether a call for an heir is left in the store until it expires", "event", "heir_unclear", "error", err)
	}
	return answered
}

// unanswered returns why there is no heir as called.
func (s *nomination) unanswered() error {
	if s.trouble != nil {
		return fmt.Errorf("%w: %w", ErrNoHeir, s.trouble)
	}
	after := time.Since(s.began).Round(time.Millisecond)
	return fmt.Errorf("%w: %q did not answer for %v (does it stand?)", ErrNoHeir, s.id, after)
}
