package demo

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// What the timeline is drawn with.
const (
	waiting = '·'
	leading = '█'
	asleep  = 'z'
	absent  = ' '
)

// Timeline draws who led when, one row a candidate, about width columns wide.
// Each column stands for the same stretch of time. A term is a bar that begins
// with its number; K, S and C are SIGKILL, SIGSTOP and SIGCONT.
func Timeline(h History, width int) string {
	if len(h.Events) == 0 {
		return "nothing happened\n"
	}
	names := h.Who()
	label := len("leader")
	for _, name := range names {
		label = max(label, len(name))
	}
	s := newScale(h, max(width-label-2, 20))
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "%-*s  %s\n", label, name, strings.TrimRight(string(s.row(h, name)), " "))
	}
	fmt.Fprintf(&b, "%-*s  %s\n", label, "leader", strings.TrimRight(string(s.leaders(h)), " "))
	ruler, numbers := s.axis()
	fmt.Fprintf(&b, "%-*s  %s\n%-*s  %s\n", label, "", ruler, label, "", numbers)
	return b.String()
}

// Legend explains a timeline.
func Legend() string {
	return "█ leads (the number counts the terms)   · waits   z asleep   K SIGKILL   S SIGSTOP   C SIGCONT"
}

// A scale maps times to columns.
type scale struct {
	from    time.Duration
	column  time.Duration
	columns int
}

func newScale(h History, columns int) scale {
	all := h.of("")
	from, to := all[0].At, all[len(all)-1].At
	return scale{from: from, column: max((to-from)/time.Duration(columns-1), time.Millisecond), columns: columns}
}

func (s scale) at(t time.Duration) int {
	return min(max(int((t-s.from)/s.column), 0), s.columns-1)
}

// row draws one candidate.
func (s scale) row(h History, who string) []rune {
	row := slices.Repeat([]rune{absent}, s.columns)
	events := h.of(who)
	s.fill(row, events[0].At, events[len(events)-1].At, waiting)
	if !slices.ContainsFunc(events, func(e Event) bool { return e.Kind == Killed }) {
		s.fill(row, events[0].At, s.end(), waiting)
	}
	for i, e := range events {
		if e.Kind == Stopped {
			s.fill(row, e.At, s.wake(events[i:]), asleep)
		}
	}
	s.terms(row, h, who)
	for _, e := range events {
		if mark, ok := marks[e.Kind]; ok {
			row[s.at(e.At)] = mark
		}
	}
	return row
}

var marks = map[Kind]rune{Killed: 'K', Stopped: 'S', Woken: 'C'}

func (s scale) end() time.Duration {
	return s.from + time.Duration(s.columns)*s.column
}

func (s scale) wake(events []Event) time.Duration {
	for _, e := range events {
		if e.Kind == Woken {
			return e.At
		}
	}
	return s.end()
}

func (s scale) fill(row []rune, from, to time.Duration, with rune) {
	for i := s.at(from); i <= s.at(to); i++ {
		row[i] = with
	}
}

// terms draws the bars of a candidate's terms, or of everybody's.
func (s scale) terms(row []rune, h History, who string) {
	for i, t := range h.Stretches() {
		if who != "" && t.Who != who {
			continue
		}
		s.fill(row, t.Begin, t.End, leading)
		for j, digit := range fmt.Sprint(i + 1) {
			row[min(s.at(t.Begin)+j, s.columns-1)] = digit
		}
	}
}

// leaders draws all terms in one row; what is left free is time without a
// leader.
func (s scale) leaders(h History) []rune {
	row := slices.Repeat([]rune{absent}, s.columns)
	s.terms(row, h, "")
	return row
}

// axis returns a ruler with a tick at round seconds, and the numbers below it.
func (s scale) axis() (ruler, numbers string) {
	step := time.Second
	for _, seconds := range []int{2, 5, 10, 20, 30, 60, 120, 300} {
		if step/s.column >= 8 {
			break
		}
		step = time.Duration(seconds) * time.Second
	}
	line := slices.Repeat([]rune{'─'}, s.columns)
	text := slices.Repeat([]rune{' '}, s.columns+8)
	for t := time.Duration(0); s.from+t < s.end(); t += step {
		at := s.at(s.from + t)
		line[at] = '┬'
		copy(text[at:], []rune(fmt.Sprintf("%ds", int(t/time.Second))))
	}
	return string(line), strings.TrimRight(string(text), " ")
}
