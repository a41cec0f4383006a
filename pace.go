package election

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/kv"
)

// What the margin covers; see the package documentation.
const (
	drift    = 0.01                  // ρ: clocks run within one per cent of true
	reaction = 50 * time.Millisecond // W: timer, scheduler and cancellation on a busy machine
)

// chance is the shortest trust that leaves time to try a refresh twice. Where a quarter of the
// TTL is longer, that is the least.
const chance = 3 * reaction / 4

// A pace holds all durations that follow from TTL and margin.
type pace struct {
	machine.Timing
	tick   time.Duration                       // the longest time between two readings of the clock
	window time.Duration                       // how long a refresh waits for others to join it
	jitter func(n time.Duration) time.Duration // returns one of [0, n)
}

// leastMargin is the inequality of the package documentation, in whole
// milliseconds.
func leastMargin(ttl time.Duration) time.Duration {
	least := time.Duration(float64(ttl)*2*drift/(1+drift)) + reaction
	return (least + time.Millisecond - 1).Truncate(time.Millisecond)
}

// newPace returns the durations for a TTL and a margin, the default one if it is zero.
// An error is an unfit.
func newPace(ttl, margin time.Duration) (pace, error) {
	if ttl < 0 {
		return pace{}, unfit{why: fmt.Sprintf("TTL %v is negative", ttl)}
	}
	short := ttl < leastTTL(margin)
	asked, least := margin, leastMargin(ttl)
	if margin == 0 {
		margin = defaultMargin(ttl)
	}
	switch {
	case margin < least:
		return pace{}, unfit{why: fmt.Sprintf("margin %v is too small for TTL %v: clocks that differ and a busy machine need at least %v", margin, ttl, least)}
	case short:
		return pace{}, unfit{
			why:     fmt.Sprintf("TTL %v is too short for margin %v: leadership could be trusted for %v only", ttl, margin, max(ttl-margin, 0)),
			instead: instead(leastTTL(asked), asked),
		}
	}
	refresh := (ttl - margin) / 3
	return pace{
		Timing: machine.Timing{
			TTL:     ttl,
			Margin:  margin,
			Refresh: refresh,
			Attempt: refresh,
			Spread:  min(ttl/50, 250*time.Millisecond),
			Crowd:   min(ttl/20, 2*time.Second),
			Stage:   min(ttl/100, 20*time.Millisecond),
			Pause:   min(ttl/3, 2*time.Second),
			Lull:    min(ttl/100, 50*time.Millisecond),
		},
		tick:   min(margin, time.Second),
		window: min(ttl/100, 100*time.Millisecond),
		jitter: rand.N[time.Duration],
	}, nil
}

// futility is how long a candidate leaves the safe to others when so many terms in a row have
// ended without one refresh: no time after one term, then a TTL, doubled each time up to eight.
func (p pace) futility(terms int) time.Duration {
	if terms < 2 {
		return 0
	}
	return p.TTL << min(terms-2, 3)
}

func defaultMargin(ttl time.Duration) time.Duration { return max(ttl/10, leastMargin(ttl)) }

// leastTTL returns the shortest TTL that a margin fits into, the default one if it is
// zero, in whole milliseconds.
func leastTTL(margin time.Duration) time.Duration {
	if margin != 0 {
		return upTo(max(margin*4/3, margin+chance), time.Millisecond)
	}
	least := upTo(reaction+chance, time.Millisecond)
	for least < leastTTL(defaultMargin(least)) {
		least += time.Millisecond
	}
	return least
}

func upTo(d, unit time.Duration) time.Duration { return (d + unit - 1).Truncate(unit) }

// An unfit says why a TTL and a margin cannot be used.
type unfit struct{ why, instead string }

func (u unfit) Error() string {
	if u.instead == "" {
		return "election: " + u.why
	}
	return "election: " + u.why + "; " + u.instead
}

// instead says what to use: a TTL that is long enough, and a margin that fits it if
// the one that was asked for does not.
func instead(ttl, margin time.Duration) string {
	if least := leastMargin(ttl); margin != 0 && margin < least {
		ttl = max(ttl, leastTTL(least))
		return fmt.Sprintf("use a TTL of at least %v with a margin of %v, which grows with the TTL", ttl, leastMargin(ttl))
	}
	return fmt.Sprintf("use a TTL of at least %v", ttl)
}

// paceFor returns the durations that follow from the options, if those fit each other
// and the store. The error names all that is wrong, and values that work together.
func (o Options) paceFor(store kv.Store) (pace, error) {
	p, err := newPace(o.TTL, o.Margin)
	_, refused := store.Lifetime(o.TTL)
	if refused == nil {
		return p, err
	}
	ttl, known := leastTaken(store, max(o.TTL, leastTTL(o.Margin)))
	_, then := newPace(ttl, o.Margin)
	u, unfit := errors.AsType[unfit](err)
	switch {
	case unfit && known:
		return pace{}, fmt.Errorf("election: %s; %w; %s", u.why, refused, instead(ttl, o.Margin))
	case unfit:
		return pace{}, fmt.Errorf("election: %s; %w", u.why, refused)
	case known && then != nil:
		return pace{}, fmt.Errorf("election: TTL %v: %w; %s", o.TTL, refused, instead(ttl, o.Margin))
	}
	return pace{}, fmt.Errorf("election: TTL %v: %w", o.TTL, refused) // the store says what would be right
}

// longTTL bounds the search for a TTL that a store takes.
const longTTL = 48 * time.Hour

// leastTaken returns the shortest TTL that a store takes, of a given one and those
// above it, in whole milliseconds; not known if all are too long for the store.
func leastTaken(store kv.Store, from time.Duration) (_ time.Duration, known bool) {
	taken := func(ttl time.Duration) bool {
		_, err := store.Lifetime(ttl)
		return err == nil
	}
	low := upTo(from, time.Millisecond)
	high := low
	for ; !taken(high); high *= 2 {
		if high > longTTL {
			return 0, false
		}
		low = high
	}
	for high-low > time.Millisecond {
		if middle := (low + (high-low)/2).Truncate(time.Millisecond); taken(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high, true
}

// A backoff doubles the pause between tries, up to a bound, and jitters it so
// that many candidates that failed together do not come back together. A campaign does not
// use it, but turn.retry of package machine.
type backoff struct {
	least, most, next time.Duration
	jitter            func(n time.Duration) time.Duration
}

func (p pace) backoff() backoff {
	return backoff{least: p.Spread, most: p.Pause, jitter: p.jitter}
}

func (b *backoff) reset() { b.next = 0 }

// pause returns how long to wait before the next try.
func (b *backoff) pause() time.Duration {
	b.next = min(max(2*b.next, b.least), b.most)
	return b.next/2 + b.jitter(b.next/2+1)
}
