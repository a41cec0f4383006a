package machine

import "time"

// An Instant is a moment on this host's clocks, counted from some moment before. Both
// readings are taken because Go's monotonic clock stands still while a Linux system is
// suspended.
type Instant struct {
	Mono time.Duration // Go's monotonic clock, which timers go by
	Boot time.Duration // a clock that goes on through a suspend
}

// Since returns the time from earlier to t: the larger of the two clocks' answers. A right
// that ends with time may only err on the fast side.
func (t Instant) Since(earlier Instant) time.Duration {
	return max(t.Mono-earlier.Mono, t.Boot-earlier.Boot)
}

// A Trust is how long a lease may be relied on: for Span, from the moment before the
// request that proved it was sent. It is never counted from an answer, which may have been
// on its way for any time.
type Trust struct {
	Sent Instant
	Span time.Duration
}

// Left returns how much trust is left. None is left if it is not positive.
func (t Trust) Left(now Instant) time.Duration { return t.Span - now.Since(t.Sent) }

// A Timing holds the durations of a campaign, all derived from TTL and margin.
//
//	sent       +Refresh    +2·Refresh   +3·Refresh = TTL − Margin    TTL
//	├────────────┼─────────────┼──────────────┼───────── Margin ───────┤
//	  trusted      1st attempt    2nd attempt  term ends                 store may
//	               ≤ Attempt      ≤ Attempt                              elect another
type Timing struct {
	TTL     time.Duration
	Margin  time.Duration
	Refresh time.Duration // from the send of one good refresh to the next
	Attempt time.Duration // at most, for one request to the store
	Spread  time.Duration // the least pause between two tries at something that fails
	Pause   time.Duration // and the most
	Crowd   time.Duration // over this, candidates spread their bids where nobody is waiting for one of them
	Stage   time.Duration // between one wave of claims on a vacancy and the next
	Lull    time.Duration // for which a leader that was elected by its first request watches nothing
}
