package history

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// SVG writes a picture of who led when: one row per candidate, one for all of
// them, and above them what was done to the network and the store. It needs
// nothing from elsewhere, and is light or dark as its reader's system is. The
// same history makes the same picture. h is sorted.
func SVG(w io.Writer, h History, title string) error {
	p := newPicture(h.unasked())
	p.faults()
	p.candidates()
	p.leaders()
	p.axis()
	p.explain()
	p.legend()
	return p.write(w, title, p.y+margin/2)
}

// Measures in pixels of a picture as it is drawn; a viewer may scale it.
const (
	pictureWidth = 960
	margin       = 24
	rowHeight    = 34
	barHeight    = 18
)

// A picture is an SVG in the making. What is drawn later lies above.
type picture struct {
	sheet
	h           History
	names       []string
	terms       []Stretch
	from, to    time.Duration
	left, right float64 // where from and to are
	y           float64 // where the next row begins
	notes       []Event
}

func newPicture(h History) *picture {
	p := &picture{sheet: newSheet(), h: h, names: h.Names(), terms: h.Stretches(), right: pictureWidth - margin, y: 56}
	label := len("leader")
	for _, name := range p.names {
		label = max(label, min(utf8.RuneCountInString(name), 24))
	}
	p.left = margin + float64(label*letterWidth) + 14
	if len(h.Events) > 0 {
		p.from, p.to = h.Events[0].At, h.Events[len(h.Events)-1].At
	}
	p.to = max(p.to, p.from+time.Millisecond)
	return p
}

// x returns where a time is, or the nearest edge.
func (p *picture) x(t time.Duration) float64 {
	share := float64(t-p.from) / float64(p.to-p.from)
	return p.left + min(max(share, 0), 1)*(p.right-p.left)
}

// since returns a time as its reader counts it.
func (p *picture) since(t time.Duration) string { return fmt.Sprintf("%.2f s", (t - p.from).Seconds()) }

// row begins a row and returns the height of its middle.
func (p *picture) row(label, class string) float64 {
	middle := p.y + rowHeight/2
	p.y += rowHeight
	p.text(margin, middle+4, class, shorten(label, 24))
	return middle
}

// candidates draws a row for each.
func (p *picture) candidates() {
	for i, who := range p.names {
		y := p.row(who, "name")
		events := p.h.Of(who)
		p.waits(events, y)
		for n, t := range p.terms {
			if t.Who == who {
				p.bar(t, y, i, fmt.Sprint(n+1))
				p.trust(t, y)
			}
		}
		for j, e := range events {
			if e.Kind == Stopped {
				from, to := p.x(e.At), p.x(p.wake(events[j:]))
				p.rect("asleep", from, y-barHeight/2, to-from, barHeight, "asleep from "+p.since(e.At))
			}
		}
		for _, e := range events {
			p.sign(e.Kind, p.x(e.At), y, string(e.Kind)+" at "+p.since(e.At))
		}
	}
}

// waits draws the stretches of time in which a candidate lives.
func (p *picture) waits(events []Event, y float64) {
	lives, since := true, events[0].At
	for _, e := range events {
		switch {
		case lives && (e.Kind == Killed || e.Kind == Left):
			p.line("waits", p.x(since), y, p.x(e.At), y)
			lives = false
		case !lives && e.Kind == Ready:
			lives, since = true, e.At
		}
	}
	if lives {
		p.line("waits", p.x(since), y, p.right, y)
	}
}

// wake returns when the one that was stopped by the first of the events was
// woken.
func (p *picture) wake(events []Event) time.Duration {
	for _, e := range events {
		if e.Kind == Woken {
			return e.At
		}
	}
	return p.to
}

// bar draws a term, with the first of the texts that fits.
func (p *picture) bar(t Stretch, y float64, colour int, text string) {
	from, to := p.x(t.Begin), p.x(t.End)
	p.used["leads"] = true
	told := fmt.Sprintf("%s leads under token %d from %s to %s", t.Who, t.Token, p.since(t.Begin), p.since(t.End))
	p.rect(fmt.Sprintf("leads c%d", colour%colours), from, y-barHeight/2, max(to-from, 1), barHeight, told)
	for _, s := range []string{fmt.Sprintf("%s · token %d", text, t.Token), text} {
		if float64(utf8.RuneCountInString(s)*letterWidth)+8 < to-from {
			p.text(from+6, y+4, "on", s)
			return
		}
	}
}

// trust draws until when a leader trusts its lease, if it was not the first to
// end the term: it ran out, or the leader was killed while it had some left.
func (p *picture) trust(t Stretch, y float64) {
	until := t.Trusts[len(t.Trusts)-1].Until
	if until > p.to || until > t.End && !t.killed {
		return
	}
	p.line("trust", p.x(t.End), y, p.x(until), y)
	p.line("trust", p.x(until), y-barHeight/2-4, p.x(until), y+barHeight/2+4)
}

// leaders draws all terms in one row; what is left free is time without a
// leader. Below is until when a leader was promised.
func (p *picture) leaders() {
	p.line("rule", margin, p.y+3, p.right, p.y+3)
	p.y += 6
	y := p.row("leader", "name strong")
	for _, t := range p.terms {
		p.bar(t, y, slices.Index(p.names, t.Who), t.Who)
	}
	for _, due := range p.h.Of("", Due) {
		if by := due.At + due.Within; by <= p.to {
			p.line("due", p.x(due.At), y+barHeight/2+5, p.x(by), y+barHeight/2+5)
			p.line("due", p.x(by), y+barHeight/2+1, p.x(by), y+barHeight/2+9)
		}
	}
	p.y += 8
}

// faults draws what was done to the network, the store and the record: a letter
// where it begins, explained below, and a shade for as long as it lasts.
func (p *picture) faults() {
	all := p.h.Of("", Fault, Healed, Interfered, Placed)
	if len(all) == 0 {
		p.grid()
		return
	}
	p.notes = all
	ends := []float64{} // of the letters in each line
	places := make([][2]float64, len(all))
	for i, e := range all {
		x := p.x(e.At)
		line := slices.IndexFunc(ends, func(end float64) bool { return end+2 <= x })
		if line < 0 {
			line, ends = len(ends), append(ends, 0)
		}
		ends[line] = x + 16
		places[i] = [2]float64{x, p.y + 12 + float64(line*18)}
	}
	p.text(margin, p.y+16, "name", "fault")
	p.y += float64(len(ends)*18) + 8
	bottom := p.grid()
	for i, e := range all {
		if e.Kind == Fault {
			p.rect("fault", p.x(e.At), p.y, p.x(p.healed(all[i:]))-p.x(e.At), bottom-p.y, e.Text)
		}
		p.line("when", places[i][0], places[i][1], places[i][0], bottom)
	}
	for i := range all {
		fmt.Fprintf(&p.body, `<circle class="%s" cx="%.1f" cy="%.1f" r="8"/>`, "spot", places[i][0], places[i][1])
		p.text(places[i][0], places[i][1]+4, "on middle", letter(i))
	}
}

// healed returns when the first of the events, a fault, was put right.
func (p *picture) healed(events []Event) time.Duration {
	for _, e := range events[1:] {
		if e.Kind == Healed && (e.Who == events[0].Who || e.Who == "") {
			return e.At
		}
	}
	return p.to
}

func letter(i int) string { return string(rune('a' + i%26)) }

// grid draws a thin line behind the rows at each time that the axis names. It
// returns where they end.
func (p *picture) grid() (bottom float64) {
	bottom = p.y + float64(len(p.names)+1)*rowHeight + 14
	for t := p.from; t <= p.to; t += p.step() {
		p.line("grid", p.x(t), p.y, p.x(t), bottom)
	}
	return bottom
}

// step returns the time between two ticks: round, and no less than their numbers
// need.
func (p *picture) step() time.Duration {
	step := 100 * time.Millisecond
	for _, seconds := range []float64{0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 10800, 21600, 86400} {
		if p.x(p.from+step)-p.left >= 60 {
			break
		}
		step = time.Duration(seconds * float64(time.Second))
	}
	return max(step, (p.to-p.from)/20)
}

// axis draws the times.
func (p *picture) axis() {
	p.line("axis", p.left, p.y, p.right, p.y)
	for t := p.from; t <= p.to; t += p.step() {
		x := p.x(t)
		p.line("axis", x, p.y, x, p.y+5)
		p.text(x, p.y+18, "small middle", fmt.Sprintf("%g s", (t-p.from).Seconds()))
	}
	p.y += 34
}

// explain says what the letters stand for.
func (p *picture) explain() {
	const indent = 80
	for i, e := range p.notes {
		text := strings.TrimSpace(e.Who + " " + e.Text)
		if text == "" {
			text = string(e.Kind)
		}
		p.text(p.left, p.y+4, "small strong", letter(i))
		p.text(p.left+20, p.y+4, "small", p.since(e.At))
		for _, line := range wrap(text, int(p.right-p.left-indent)/letterWidth) {
			p.text(p.left+indent, p.y+4, "small", line)
			p.y += 17
		}
	}
	if len(p.notes) > 0 {
		p.y += 8
	}
}

// legend explains the signs that were used.
func (p *picture) legend() {
	x, y := p.left, p.y
	say := func(kind, text string, draw func()) {
		if !p.used[kind] {
			return
		}
		width := 34 + float64(utf8.RuneCountInString(text)*letterWidth)
		if x+width > p.right {
			x, y = p.left, y+20
		}
		draw()
		p.text(x+26, y+4, "small", text)
		x += width
	}
	line := func(class string) func() {
		return func() {
			p.line(class, x, y, x+20, y)
			if class != "waits" {
				p.line(class, x+20, y-5, x+20, y+5)
			}
		}
	}
	say("leads", "leads: number of the term · token", func() { p.rect("leads c0", x, y-5, 20, 10, "") })
	say("waits", "waits", line("waits"))
	say("asleep", "asleep", func() { p.rect("asleep", x, y-5, 20, 10, "") })
	say(string(Killed), "killed", func() { p.sign(Killed, x+10, y, "") })
	say(string(Stopped), "put to sleep", func() { p.sign(Stopped, x+10, y, "") })
	say(string(Woken), "woken", func() { p.sign(Woken, x+10, y, "") })
	say("trust", "its lease was trusted until", line("trust"))
	say("due", "a leader is promised by then", line("due"))
	say("fault", "while a fault lasts", func() { p.rect("fault", x, y-5, 20, 10, "") })
	p.y = y + 20
}
