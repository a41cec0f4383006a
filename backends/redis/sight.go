package rediskv

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/electkv/election/internal/board"
	"github.com/electkv/election/kv"
)

// A sight is what the watches of one safe were shown last.
type sight struct {
	store   *Store
	name    string
	at      place
	lookout lookout
	topic   *board.Topic

	mu       sync.Mutex
	show     func(kv.Record) // nil while a look is under way, which may see something older or newer
	revision uint64          // of the last record that was shown; zero if nobody can tell
}

// look is a [board.Look].
func (v *sight) look(ctx context.Context, show func(kv.Record)) (time.Duration, error) {
	v.mu.Lock()
	v.show = nil
	v.mu.Unlock()
	rec, left, err := v.lookout(ctx, v.at)
	if err != nil && !errors.Is(err, redis.Nil) {
		return 0, outcome("watch", v.name, err, nil)
	}
	v.noted(rec, show)
	return v.store.pause(rec, left), nil
}

// noted shows what a look has seen.
func (v *sight) noted(rec kv.Record, show func(kv.Record)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.show, v.revision = show, 0
	if !rec.Foreign {
		v.revision = rec.Revision
	}
	show(rec)
}

// hear shows what a writer says that it has written, if that follows on what was shown
// last, and asks for a look in any case: whatever was said may have been lost, doubled, or
// made up by somebody.
func (v *sight) hear(message string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	before, text, said := strings.Cut(message, " ")
	revision, err := strconv.ParseUint(before, 10, 64)
	if said && err == nil && v.show != nil && revision == v.revision && revision != 0 {
		var rec kv.Record
		if text != "" {
			rec = v.store.state(isRecord, text, 0)
		}
		if !rec.Foreign {
			if text != "" {
				v.revision = rec.Revision
			}
			v.show(rec)
		}
	}
	v.topic.Hint()
}
