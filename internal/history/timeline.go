package history

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// What the timeline is drawn with.
const (
	waiting = '·'
	next    = '▒'
	leading = '█'
	asleep  = 'z'
	absent  = ' '
)

// Timeline draws who led when, one row per candidate, about width columns wide.
// Each column stands for the same stretch of time. A term is a bar that begins
// with its number; K, S and C are SIGKILL, SIGSTOP and SIGCONT, A is a leader that
// is asked to give way. Who is next is a shade of grey. What went wrong
// with the network or the store is marked by letters, which are explained below.
func Timeline(h History, width int) string {
	h = h.unasked()
	if len(h.Events) == 0 {
		return "nothing happened\n"
	}
	names := h.Names()
	label := len("leader")
	for _, name := range names {
		label = max(label, len(name))
	}
	d := drawing{label: label, scale: newScale(h, max(width-label-2, 20)), terms: h.Stretches()}
	for _, name := range names {
		d.line(name, d.row(h, name))
	}
	d.line("leader", d.leaders())
	d.faults(h)
	d.foot()
	return d.out.String()
}

// Legend explains a timeline without heirs.
func Legend() string {
	return "█ leads (the number counts the terms)   · waits   z asleep   K SIGKILL   S SIGSTOP   C SIGCONT"
}

// LegendOfHeirs explains what a timeline with heirs has beside that.
func LegendOfHeirs() string {
	return "▒ is heir   A is asked to give way"
}

// A drawing is a timeline in the making.
type drawing struct {
	scale
	label int
	terms []Stretch
	notes []string
	out   strings.Builder
}

func (d *drawing) line(label string, row []rune) {
	fmt.Fprintf(&d.out, "%-*s  %s\n", d.label, label, strings.TrimRight(string(row), " "))
}

// row draws one candidate.
func (d *drawing) row(h History, who string) []rune {
	row := d.empty()
	events := h.Of(who)
	to := d.end()
	if slices.ContainsFunc(events, func(e Event) bool { return e.Kind == Killed }) {
		to = events[len(events)-1].At
	}
	d.fill(row, events[0].At, to, waiting)
	d.heirs(row, events)
	for i, e := range events {
		if e.Kind == Stopped {
			d.fill(row, e.At, d.wake(events[i:]), asleep)
		}
	}
	d.bars(row, who)
	for _, e := range events {
		if mark, ok := markOf(e.Kind); ok {
			row[d.at(e.At)] = mark
		}
	}
	return row
}

func markOf(k Kind) (mark rune, ok bool) {
	switch k {
	case Killed:
		return 'K', true
	case Stopped:
		return 'S', true
	case Woken:
		return 'C', true
	case Asked:
		return 'A', true
	}
	return 0, false
}

// heirs draws the stretches in which a candidate knew that it was next.
func (d *drawing) heirs(row []rune, events []Event) {
	for i, e := range events {
		if e.Kind != Became || e.Value != Heir {
			continue
		}
		to := d.end()
		if j := slices.IndexFunc(events[i+1:], endsHeir); j >= 0 {
			to = events[i+1+j].At
		}
		d.fill(row, e.At, to, next)
	}
}

func endsHeir(e Event) bool { return e.Kind == Became || e.Kind == Elected || e.Kind == Killed }

// bars draws a candidate's terms, or everybody's.
func (d *drawing) bars(row []rune, who string) {
	for i, t := range d.terms {
		if who != "" && t.Who != who {
			continue
		}
		d.fill(row, t.Begin, t.End, leading)
		for j, digit := range fmt.Sprint(i + 1) {
			row[min(d.at(t.Begin)+j, d.columns-1)] = digit
		}
	}
}

// leaders draws all terms in one row; what is left free is time without a
// leader.
func (d *drawing) leaders() []rune {
	row := d.empty()
	d.bars(row, "")
	return row
}

// faults draws a row with a letter for each thing that was done to the network
// or the store, if any was.
func (d *drawing) faults(h History) {
	row := d.empty()
	for i, e := range h.Of("", Fault, Healed, Interfered, Placed) {
		letter := rune('a' + i%26)
		row[d.at(e.At)] = letter
		d.notes = append(d.notes, fmt.Sprintf("%c  %.2f s  %s", letter, (e.At-d.from).Seconds(), strings.TrimSpace(e.Who+" "+e.Text)))
	}
	if len(d.notes) > 0 {
		d.line("fault", row)
	}
}

// foot draws the axis, and explains the letters.
func (d *drawing) foot() {
	ruler, numbers := d.axis()
	d.line("", ruler)
	d.line("", numbers)
	for _, note := range d.notes {
		fmt.Fprintf(&d.out, "%-*s  %s\n", d.label, "", note)
	}
}

// A scale maps times to columns.
type scale struct {
	from    time.Duration
	column  time.Duration
	columns int
}

func newScale(h History, columns int) scale {
	from, to := h.Events[0].At, h.Events[len(h.Events)-1].At
	return scale{from: from, column: max((to-from)/time.Duration(columns-1), 1), columns: columns}
}

func (s scale) empty() []rune { return slices.Repeat([]rune{absent}, s.columns) }

func (s scale) at(t time.Duration) int {
	return min(max(int((t-s.from)/s.column), 0), s.columns-1)
}

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

// axis returns a ruler with a tick at round seconds, and the numbers below it.
func (s scale) axis() (ruler, numbers []rune) {
	step := time.Second
	for _, seconds := range []int{2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600} {
		if step/s.column >= 8 {
			break
		}
		step = time.Duration(seconds) * time.Second
	}
	step = max(step, s.column)
	line := slices.Repeat([]rune{'─'}, s.columns)
	text := slices.Repeat([]rune{' '}, s.columns+8)
	for t := time.Duration(0); s.from+t < s.end(); t += step {
		at := s.at(s.from + t)
		line[at] = '┬'
		copy(text[at:], []rune(fmt.Sprintf("%ds", int(t/time.Second))))
	}
	return line, text
}
