package scenario

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A trace is what happens in a scenario, with the time since it began.
type trace struct {
	began time.Time

	mu    sync.Mutex
	lines []traced
}

// A traced event is one line.
type traced struct {
	at   time.Duration
	turn int // among what happens at the same instant
	text string
}

// The turns of what happens at the same instant. Their order is not promised;
// that they do not overlap is asserted when they happen.
const (
	turnEnd = iota
	turnStopped
	turnLeads
	turnRole
	turnAnswer
	turnCommand // what was there before stays before it
)

func (tr *trace) add(turn int, format string, a ...any) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.lines = append(tr.lines, traced{time.Since(tr.began), turn, fmt.Sprintf(format, a...)})
}

// String returns a line for each event, in tenths of a second.
func (tr *trace) String() string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	var b strings.Builder
	for rest := tr.lines; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].turn != turnCommand {
			n++
		}
		slices.SortFunc(rest[1:n], func(x, y traced) int {
			return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.turn, y.turn), cmp.Compare(x.text, y.text))
		})
		for _, e := range rest[:n] {
			fmt.Fprintf(&b, "%8.1fs  %s\n", e.at.Seconds(), e.text)
		}
		rest = rest[n:]
	}
	return b.String()
}

// A moment is how far apart, in seconds, events that belong together may be: which of two
// goroutines comes first at the same instant is not promised, and a trace
// has tenths.
const moment = 0.15

// stamp matches a time in a trace.
var stamp = regexp.MustCompile(`\d+\.\ds`)

// sameTrace reports whether two traces tell of the same events, each at the same
// moment.
func sameTrace(want, got string) bool {
	rest := slices.Collect(strings.Lines(got))
	for line := range strings.Lines(want) {
		i := slices.IndexFunc(rest, func(other string) bool { return sameEvent(line, other) })
		if i < 0 {
			return false
		}
		rest = slices.Delete(rest, i, i+1)
	}
	return len(rest) == 0
}

// sameEvent reports whether two lines of traces differ by no more than a moment.
func sameEvent(x, y string) bool {
	xs, ys := stamp.FindAllString(x, -1), stamp.FindAllString(y, -1)
	if len(xs) != len(ys) || stamp.ReplaceAllString(strings.TrimSpace(x), "") != stamp.ReplaceAllString(strings.TrimSpace(y), "") {
		return false
	}
	for i := range xs {
		if math.Abs(seconds(xs[i])-seconds(ys[i])) > moment {
			return false
		}
	}
	return true
}

// seconds returns what stamp has matched.
func seconds(s string) float64 {
	n, err := strconv.ParseFloat(strings.TrimSuffix(s, "s"), 64)
	if err != nil {
		return math.NaN()
	}
	return n
}
