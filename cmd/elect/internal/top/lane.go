package top

import (
	"strings"
	"time"

	"github.com/electkv/election/cmd/elect/internal/chronicle"
)

// What a timeline is drawn with. A sign of more weight is shown where several things happened
// in the time of one column.
const (
	signLed     = "█"
	signHeir    = "▒"
	signForeign = "▓"
	signUnknown = "?"
	signVacant  = "·"
	signOver    = "▸" // handed over
	signLost    = "✗"
)

// A cell is one column of a timeline.
type cell struct {
	id, sign string
	weight   int
}

// A lane is a timeline in the making.
type lane struct {
	cells    []cell
	from, to time.Duration
}

func newLane(columns int, window, now time.Duration) *lane {
	return &lane{cells: make([]cell, max(columns, 0)), from: now - window, to: now}
}

// at returns the column of a time, perhaps one that is not there.
func (l *lane) at(t time.Duration) int {
	return int(int64(len(l.cells)) * int64(t-l.from) / max(int64(l.to-l.from), 1))
}

// draw fills the columns of a stretch of time.
func (l *lane) draw(s chronicle.Spell, sign string, weight int) {
	to := s.To
	if to == 0 {
		to = l.to
	}
	if to < l.from {
		return
	}
	for i := max(l.at(s.From), 0); i <= min(l.at(to), len(l.cells)-1); i++ {
		l.put(i, cell{s.Owner.ID, sign, weight})
	}
}

func (l *lane) put(i int, c cell) {
	if 0 <= i && i < len(l.cells) && c.weight >= l.cells[i].weight {
		l.cells[i] = c
	}
}

// spells draws what an election was, or the terms of one candidate.
func (l *lane) spells(e *chronicle.Election, id string) {
	for _, s := range e.Spells {
		if id != "" && s.Owner.ID != id {
			continue
		}
		switch s.State {
		case chronicle.Led:
			l.draw(s, signLed, 2)
		case chronicle.Foreign:
			l.draw(s, signForeign, 2)
		case chronicle.Vacant:
			l.draw(s, signVacant, 1)
		case chronicle.Unknown:
			l.draw(s, signUnknown, 1)
		}
		switch s.End {
		case chronicle.HandedOver:
			l.put(l.at(s.To), cell{s.Owner.ID, signOver, 3})
		case chronicle.Lost:
			l.put(l.at(s.To), cell{"", signLost, 4})
		case chronicle.Over, chronicle.Unseen:
		}
	}
}

// heirs draws when a candidate was heir.
func (l *lane) heirs(e *chronicle.Election, id string) {
	for _, h := range e.Heirs {
		if h.Owner.ID == id {
			l.draw(h, signHeir, 1)
		}
	}
}

// String is the timeline in colours.
func (l *lane) String() string {
	var b strings.Builder
	for i := 0; i < len(l.cells); {
		j := i
		for j < len(l.cells) && l.cells[j] == l.cells[i] {
			j++
		}
		c := l.cells[i]
		if c.sign == "" {
			c.sign = " "
		}
		text := strings.Repeat(c.sign, j-i)
		switch c.sign {
		case signLost, signVacant:
			text = alarm(text)
		case signUnknown:
			text = soft(text)
		default:
			text = inColour(c.id, text)
		}
		b.WriteString(text)
		i = j
	}
	return b.String()
}
