package top

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/electkv/election/cmd/elect/internal/chronicle"
)

// chrome is how many lines there are beside those of the list.
const chrome = 4

// View implements [tea.Model].
func (m *Model) View() tea.View {
	v := tea.NewView(m.content())
	v.AltScreen = true
	return v
}

// content is what the screen shows.
func (m *Model) content() string {
	if m.width == 0 {
		return "" // the size comes first of all
	}
	var lines []string
	switch e, ok := m.election(); {
	case m.help:
		lines = help()
	case m.one && ok:
		lines = m.detail(e)
	default:
		lines = m.list()
	}
	for i, line := range lines {
		lines[i] = strings.TrimRight(fit(line, m.width), " ")
	}
	return strings.Join(lines[:min(len(lines), max(m.height, 1))], "\n")
}

// headline says how many elections there are, and how they are.
func (m *Model) headline() string {
	vacant, often := 0, 0
	for i := range m.report.Elections {
		e := &m.report.Elections[i]
		if e.Now().State == chronicle.Vacant {
			vacant++
		}
		if m.flaps(e) {
			often++
		}
	}
	text := bold(plural(len(m.report.Elections), "election", "elections"))
	if vacant > 0 {
		text += " · " + alarm(fmt.Sprintf("%d without a leader", vacant))
	}
	if often > 0 {
		text += " · " + bold(fmt.Sprintf("%d flapping", often))
	}
	return text + soft("  "+clean(m.store))
}

func (m *Model) flaps(e *chronicle.Election) bool { return e.Terms(m.now-while) >= flapping }

// list returns the lines of all elections.
func (m *Model) list() []string {
	c := m.columns()
	lines := []string{m.headline(), soft(c.head(m))}
	room := max(m.height-chrome, 1)
	cursor := m.cursor()
	m.first = min(m.first, cursor)
	m.first = max(m.first, cursor-room+1)
	for i := m.first; i < min(len(m.report.Elections), m.first+room); i++ {
		e := &m.report.Elections[i]
		line := c.row(m, e)
		if i == cursor {
			line = reverse("›") + line[1:]
		}
		lines = append(lines, line)
	}
	switch s := m.report.Search; {
	case s.Trouble != "":
		lines = append(lines, alarm("The elections cannot be listed: "+clean(s.Trouble)))
	case s.Left:
		lines = append(lines, alarm("There are more elections than are followed: name those that matter, or give a prefix."))
	case len(m.report.Elections) == 0:
		lines = append(lines, soft("No elections yet."))
	}
	return append(pad(lines, m.height-1), soft("↑↓ move · enter look at one · w time shown · ? help · q quit"))
}

// pad fills the screen, so that the last line is at the bottom.
func pad(lines []string, height int) []string {
	for len(lines) < height {
		lines = append(lines, "")
	}
	return lines[:max(min(len(lines), height), 0)]
}

// columns are how wide the columns of the list are. What is left is the timeline's.
type columns struct{ name, leader, age, heir, lane int }

func (m *Model) columns() columns {
	c := columns{name: 12, leader: 10, age: 9, heir: 10}
	for i := range m.report.Elections {
		e := &m.report.Elections[i]
		c.name = max(c.name, len([]rune(e.Name)))
		c.leader = max(c.leader, len([]rune(leader(e))))
		if h, ok := e.Heir(); ok {
			c.heir = max(c.heir, len([]rune(h.Owner.ID)))
		}
	}
	c.name, c.leader, c.heir = min(c.name, max(m.width/4, 12)), min(c.leader, max(m.width/6, 10)), min(c.heir, max(m.width/6, 10))
	c.leader, c.heir = c.leader+2, c.heir+2 // with the sign of their colour
	c.lane = max(m.width-c.name-c.leader-c.age-c.heir-16, 0)
	return c
}

func (c columns) head(m *Model) string {
	return "  " + fit("ELECTION", c.name) + " " + fit("LEADER", c.leader) + " " + fit("FOR", c.age) + " " + fit("HEIR", c.heir) + " " +
		fit("TERMS", 6) + " " + fit(fmt.Sprintf("THE LAST %s, UNTIL NOW", strings.ToUpper(windows()[m.window].text)), c.lane)
}

func (c columns) row(m *Model, e *chronicle.Election) string {
	now, next, heir := e.Now(), "-", ""
	if h, ok := e.Heir(); ok {
		next, heir = clean(h.Owner.ID), h.Owner.ID
	}
	who := fit(named(now.Owner.ID, leader(e)), c.leader)
	if now.State != chronicle.Led {
		who = alarm(who)
	}
	terms := fit(fmt.Sprint(e.Terms(m.now-while)), 6)
	if m.flaps(e) {
		terms = alarm(terms)
	}
	l := newLane(c.lane, windows()[m.window].Duration, m.now)
	l.spells(e, "")
	return "  " + fit(clean(e.Name), c.name) + " " + who + " " + fit(m.age(now), c.age) + " " + fit(named(heir, next), c.heir) + " " + terms + " " + l.String()
}

// leader says who leads, or why nobody does.
func leader(e *chronicle.Election) string {
	switch now := e.Now(); now.State {
	case chronicle.Led:
		return clean(now.Owner.ID)
	case chronicle.Vacant:
		return "(nobody)"
	case chronicle.Foreign:
		return "(another lock)"
	case chronicle.Unknown:
	}
	return "(not seen)"
}

// age says how long a spell has lasted. A tilde is before the age of a term that had begun
// before it was seen, by its leader's own clock or at least.
func (m *Model) age(s chronicle.Spell) string {
	switch {
	case s.From == 0:
		return "-"
	case s.Told:
		return "~" + lasting(m.now-s.From)
	case s.Found && !s.Owner.Since.IsZero():
		return "~" + lasting(time.Since(s.Owner.Since))
	case s.Found:
		return ">" + lasting(m.now-s.From)
	}
	return lasting(m.now - s.From)
}
