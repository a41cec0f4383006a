package election

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// What the margin pays for; see the package documentation.
const (
	drift    = 0.01                  // ρ: clocks run within one per cent of true
	reaction = 50 * time.Millisecond // W: timer, scheduler and cancellation on a busy machine
)

// Trust is how long a lease may be relied on: for span, from the moment before
// the request that proved it was sent. It is never counted from a reply, which
// may have been on its way for any time.
type trust struct {
	sent instant
	span time.Duration
}

// left returns how much trust is left at the instant t. None is left if it is
// not positive.
func (tr trust) left(t instant) time.Duration {
	return tr.span - t.since(tr.sent)
}

// until returns the end of trust on Go's clock.
func (tr trust) until() time.Time {
	return tr.sent.mono.Add(tr.span)
}

// A pace holds all durations that follow from TTL and margin.
//
//	sent       +refresh    +2·refresh   +3·refresh = TTL − margin    TTL
//	├────────────┼─────────────┼──────────────┼───────── margin ───────┤
//	  trusted      1st attempt    2nd attempt  term ends                 store may
//	               ≤ attempt      ≤ attempt                              elect another
type pace struct {
	ttl     time.Duration
	margin  time.Duration
	refresh time.Duration // from the send of one good refresh to the next
	attempt time.Duration // at most, for one request to the store
	tick    time.Duration // at most, between two looks at the clock
	spread  time.Duration // candidates that see a vacancy spread their claims over this
	crowd   time.Duration // and over this, where nobody is waiting for one of them
	pause   time.Duration // at most, between two tries at something that fails

	jitter func(n time.Duration) time.Duration // returns one of [0, n)
}

// leastMargin is the inequality of the package documentation, in whole
// milliseconds.
func leastMargin(ttl time.Duration) time.Duration {
	least := time.Duration(float64(ttl)*2*drift/(1+drift)) + reaction
	return (least + time.Millisecond - 1).Truncate(time.Millisecond)
}

func newPace(ttl, margin time.Duration) (pace, error) {
	if ttl < 0 {
		return pace{}, fmt.Errorf("election: TTL %v is negative", ttl)
	}
	least := leastMargin(ttl)
	if margin == 0 {
		margin = max(ttl/10, least)
	}
	if margin < least {
		return pace{}, fmt.Errorf("election: margin %v is too small for TTL %v: clocks that differ and a busy machine need at least %v", margin, ttl, least)
	}
	// A quarter of the TTL, and three times a few milliseconds, are what it
	// takes to refresh with a second chance.
	if trusted := ttl - margin; trusted < max(ttl/4, 3*reaction/4) {
		return pace{}, fmt.Errorf("election: TTL %v is too short for margin %v: leadership could be trusted for %v only; use a TTL of at least %v", ttl, margin, max(trusted, 0), leastTTL(margin))
	}
	refresh := (ttl - margin) / 3
	return pace{
		ttl:     ttl,
		margin:  margin,
		refresh: refresh,
		attempt: refresh,
		tick:    min(margin, time.Second),
		spread:  min(ttl/50, 250*time.Millisecond),
		crowd:   min(ttl/20, 2*time.Second),
		pause:   min(ttl/3, 2*time.Second),
		jitter:  rand.N[time.Duration],
	}, nil
}

// leastTTL returns a round TTL that a margin fits into.
func leastTTL(margin time.Duration) time.Duration {
	least := max(margin*4/3, margin+3*reaction/4)
	return (least + 99*time.Millisecond).Truncate(100 * time.Millisecond)
}

// A backoff doubles the pause between tries, up to a bound, and jitters it so
// that many who failed together do not come back together.
type backoff struct {
	least, most, next time.Duration
	jitter            func(n time.Duration) time.Duration
}

func (p pace) backoff() backoff {
	return backoff{least: p.spread, most: p.pause, jitter: p.jitter}
}

func (b *backoff) reset() { b.next = 0 }

// pause returns how long to wait before the next try.
func (b *backoff) pause() time.Duration {
	b.next = min(max(2*b.next, b.least), b.most)
	return b.next/2 + b.jitter(b.next/2+1)
}
