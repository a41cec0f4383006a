package electionhttp

import (
	"context"
	"errors"
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/snapshot"
	"github.com/electkv/election/kv"
)

// heirSuffix ends the name of the safe beside the leader's in which candidates compete to be
// heir.
const heirSuffix = ":heir"

// pause is how long it takes until a watch that has failed begins again.
const pause = 2 * time.Second

// lookAtHeir tells who is next. What goes wrong with the store is told by lookAtLeader.
func (h *Handler) lookAtHeir(ctx context.Context, tell func(event)) {
	last, known := snapshot.Heir{}, false
	for ctx.Err() == nil {
		for _, err := range h.store.Watch(ctx, h.candidate.Name()+heirSuffix) {
			if err != nil && !errors.Is(err, kv.ErrVacant) {
				break
			}
			next, ok := h.heir()
			if !ok { // it is read again when the watch begins again
				break
			}
			if !known || next != last {
				last, known = next, true
				tell(newEvent(eventHeir, 0, next))
			}
		}
		sleep(ctx, pause)
	}
}

// heir reads who is next; nobody is if the ID is empty. It reports false if that cannot be told.
func (h *Handler) heir() (snapshot.Heir, bool) {
	ctx, cancel := h.bounded()
	defer cancel()
	next, err := election.CurrentHeir(ctx, h.store, h.candidate.Name())
	switch {
	case err == nil:
		return snapshot.Heir{ID: next.ID, Value: next.Value, Rank: next.Rank, Since: next.Since.UTC()}, true
	case errors.Is(err, election.ErrNoHeir), errors.Is(err, election.ErrHeld): // a foreign lock is no heir
		return snapshot.Heir{}, true
	}
	return snapshot.Heir{}, false
}

// sleep returns after a while, or when ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
