//go:build unix

package succession_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/kv"
)

// A glimpse is what somebody saw in the leaders' safe: a token, or zero where it
// was vacant.
type glimpse struct {
	at    time.Duration
	token uint64
}

// A lookout looks at the leaders' safe all the time, in one way, and remembers
// each change.
type lookout struct {
	mu    sync.Mutex
	looks int
	seen  []glimpse
	err   error // other than the end
}

func (l *lookout) see(rec kv.Record, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.looks++
	switch {
	case errors.Is(err, kv.ErrVacant):
		rec = kv.Record{}
	case errors.Is(err, context.Canceled):
		return
	case err != nil:
		l.err = err
		return
	}
	if len(l.seen) == 0 || l.seen[len(l.seen)-1].token != rec.Token {
		l.seen = append(l.seen, glimpse{boottime.Now(), rec.Token})
	}
}

// last returns what was seen last.
func (l *lookout) last() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.seen) == 0 {
		return 0
	}
	return l.seen[len(l.seen)-1].token
}

// Lookouts are one who watches the safe, and one who gets it again and again,
// without a pause while leaders change.
type lookouts struct {
	watches, gets lookout
	stop          func()
}

// lookOut posts lookouts with links of their own. They stop with the test.
func (f *fleet) lookOut() *lookouts {
	o := &lookouts{}
	ctx, cancel := context.WithCancel(context.Background())
	var posted sync.WaitGroup
	watching, getting := f.open().store, f.open().store
	posted.Go(func() {
		for rec, err := range watching.Watch(ctx, f.name) {
			o.watches.see(rec, err)
		}
	})
	posted.Go(func() {
		for ctx.Err() == nil {
			rec, err := getting.Get(ctx, f.name)
			o.gets.see(rec, err)
			f.rest(ctx)
		}
	})
	o.stop = func() {
		cancel()
		posted.Wait()
	}
	f.t.Cleanup(o.stop)
	return o
}

// rest is the pause between two looks: none from when a leader has stopped its work
// until the next one has begun, and a short one else.
func (f *fleet) rest(ctx context.Context) {
	pause := time.NewTimer(5 * time.Millisecond)
	defer pause.Stop()
	f.mu.Lock()
	tight := f.between
	f.mu.Unlock()
	if tight {
		return
	}
	select {
	case <-f.stir:
	case <-pause.C:
	case <-ctx.Done():
	}
}

// neverVacant stops the lookouts, and requires that both saw the terms with these
// tokens and nothing else, not even between them, once there was a leader.
func (o *lookouts) neverVacant(t testing.TB, tokens []uint64) {
	t.Helper()
	both := map[string]*lookout{"by watching": &o.watches, "by looking": &o.gets}
	for what, l := range both {
		require.Eventually(t, func() bool { return l.last() == tokens[len(tokens)-1] }, patience, time.Millisecond, "the last term is seen %s", what)
	}
	o.stop()
	for what, l := range both {
		require.NoError(t, l.err, what)
		seen := []uint64{}
		for _, g := range l.seen {
			if len(seen) > 0 || g.token != 0 {
				seen = append(seen, g.token)
			}
		}
		require.Equal(t, tokens, seen, "tokens seen %s; zero stands for a vacant safe", what)
	}
	t.Logf("%d looks, none at a vacant safe between %d terms", o.gets.looks, len(tokens))
}
