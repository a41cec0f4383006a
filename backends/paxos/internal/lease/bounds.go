package lease

import "time"

// What messages may say at most. Sums of a few of them do not overflow.
const (
	// MaxCounter is the largest counter of a ballot, and so the largest token. It is
	// the largest integer up to which a float64 has all.
	MaxCounter = 1<<53 - 1
	// MaxSpan is the longest span of time: longer than any life that terms lead to.
	MaxSpan = 1 << 50 * time.Nanosecond // 13 days
	// MaxSafe is the length of the longest name of a safe, MaxRecord that of the
	// largest signature, value and note together, and MaxID that of a member's id.
	MaxSafe   = 4 << 10
	MaxRecord = 512 << 10
	MaxID     = 512
)

const (
	// Seeds is up to where counters are anybody's: clocks that count milliseconds reach
	// it in the year 2248, right or wrong.
	Seeds = 1 << 43
	// stride is how far a limit rises at once, and pace how often it does at most. No
	// cluster uses so many counters in that time.
	stride = 1 << 25
	pace   = time.Second / 2
)

// A Limit is up to which counter somebody goes along with others. A counter that nobody
// came to by use or by clock would leave none above it; so beyond [Seeds] a limit rises
// when it is needed, slowly, by its own clock. To reach [MaxCounter] that way takes four
// years.
type Limit struct {
	top  uint64
	next time.Duration // when it may rise again
}

// NewLimit returns one for somebody who has been at floor.
func NewLimit(floor uint64) Limit {
	var l Limit
	l.Learn(max(floor, Seeds))
	return l
}

// Learn raises the limit for somebody who knows that so many of the members have been at a
// counter that no one of them alone has led there.
func (l *Limit) Learn(counter uint64) {
	l.top = max(l.top, min(counter, MaxCounter-stride)+stride)
}

// Admits reports whether a counter is within the limit. The limit rises when counters come
// near it or lie beyond, if it has not just done so: whoever asks again gets there.
func (l *Limit) Admits(now time.Duration, counter uint64) bool {
	l.rise(now, counter, pace)
	return counter <= l.top
}

// Follow returns how far to go along with a counter that one member claims to be at. That
// is a stride less than what members admit, who rise twice as fast.
func (l *Limit) Follow(now time.Duration, counter uint64) uint64 {
	l.rise(now, counter, 2*pace)
	return min(counter, l.top-stride)
}

func (l *Limit) rise(now time.Duration, counter uint64, pace time.Duration) {
	near := counter > l.top || l.top-counter < stride
	if near && now >= l.next {
		l.top, l.next = min(l.top+stride, MaxCounter), now+pace
	}
}
