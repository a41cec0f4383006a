package top

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/electkv/election/cmd/elect/internal/chronicle"
)

// mostTerms is how many terms of one election are listed.
const mostTerms = 100

// detail returns the lines of one election.
func (m *Model) detail(e *chronicle.Election) []string {
	lines := append(m.facts(e), "")
	lines = append(lines, m.candidates(e)...)
	lines = append(lines, m.roster(e)...)
	lines = append(lines, "", soft(fmt.Sprintf("  %s %s %s %s", fit("TERMS", 16), fit("BEGAN", 14), fit("LASTED", 10), "HOW IT ENDED")))
	lines = append(lines, m.terms(e)...)
	room := max(m.height-1, 1)
	m.first = min(m.first, max(len(lines)-room, 0))
	return append(pad(lines[m.first:], room), soft("↑↓ scroll · esc back · w time shown · ? help · q quit"))
}

func (m *Model) facts(e *chronicle.Election) []string {
	now := e.Now()
	lines := []string{bold(clean(e.Name)) + soft("  "+clean(m.store))}
	say := func(what, text string) { lines = append(lines, soft(fit(what, 9))+text) }
	switch now.State {
	case chronicle.Led:
		say("leader", named(now.Owner.ID, clean(now.Owner.ID))+" for "+m.age(now)+", token "+fmt.Sprint(now.Owner.Token)+", TTL "+lasting(now.Owner.TTL))
	case chronicle.Vacant, chronicle.Foreign, chronicle.Unknown:
		say("leader", alarm(leader(e))+" for "+m.age(now))
	}
	if now.Owner.Value != "" {
		say("value", clean(now.Owner.Value))
	}
	if h, ok := e.Heir(); ok {
		say("heir", named(h.Owner.ID, clean(h.Owner.ID))+" for "+m.age(h))
	} else {
		say("heir", "none")
	}
	if len(now.Owner.Heirs) > 0 {
		say("then", clean(strings.Join(now.Owner.Heirs, ", ")))
	}
	if time.Until(e.Hold) > 0 {
		say("closed", "by a hold, until about "+e.Hold.Local().Format(time.TimeOnly))
	}
	if e.Trouble != "" {
		say("trouble", alarm(clean(e.Trouble)))
	}
	return lines
}

// candidates returns a row for each candidate that led or was heir in the time that is shown.
func (m *Model) candidates(e *chronicle.Election) []string {
	window := windows()[m.window]
	begin := m.now - window.Duration
	ids, width := []string{}, 10
	for _, s := range slices.Concat(e.Spells, e.Heirs) {
		if id := s.Owner.ID; id != "" && (s.To == 0 || s.To >= begin) && !slices.Contains(ids, id) {
			ids = append(ids, id)
			width = max(width, len([]rune(id)))
		}
	}
	slices.Sort(ids)
	width = min(width, max(m.width/4, 10))
	lines := []string{}
	row := func(id, label string) {
		l := newLane(m.width-width-3, window.Duration, m.now)
		if id != "" {
			l.heirs(e, id)
		}
		l.spells(e, id)
		lines = append(lines, "  "+fit(label, width)+" "+l.String())
	}
	for _, id := range ids {
		row(id, clean(id))
	}
	row("", "leader")
	axis := "−" + window.text
	return append(lines, soft("  "+fit("", width)+" "+axis+strings.Repeat(" ", max(m.width-width-3-len([]rune(axis))-3, 1))+"now"))
}

// terms returns a line for each term, the newest first.
func (m *Model) terms(e *chronicle.Election) []string {
	lines := []string{}
	for i := len(e.Spells) - 1; i >= 0 && len(lines) < mostTerms; i-- {
		s := e.Spells[i]
		if s.State != chronicle.Led || e.GoesOn(i) {
			continue
		}
		took, how := "goes on", ""
		if s.To != 0 {
			took, how = about(s)+lasting(s.To-s.From), clean(e.How(i))
			switch next := e.Spells[i+1]; {
			case next.State == chronicle.Vacant:
				how += "; nobody led for " + lasting(ended(next, m.now)-next.From)
			case next.State == chronicle.Led && (s.End == chronicle.Lost || s.End == chronicle.Over):
				how += "; the gap was too short to be seen"
			}
		}
		lines = append(lines, "  "+fit(named(s.Owner.ID, clean(s.Owner.ID)), 16)+" "+fit(about(s)+lasting(m.now-s.From)+" ago", 14)+" "+fit(took, 10)+" "+how)
	}
	return lines
}

// about is put before times that are by the clocks of others, or that were not seen to begin.
func about(s chronicle.Spell) string {
	switch {
	case s.Told:
		return "~"
	case s.Found:
		return ">"
	}
	return ""
}

func ended(s chronicle.Spell, now time.Duration) time.Duration {
	if s.To == 0 {
		return now
	}
	return s.To
}

func help() []string {
	return []string{
		bold("Keys"),
		"  ↑ ↓  k j      move, or scroll",
		"  pgup pgdown   a page on",
		"  home end  g G the first, the last",
		"  enter  →      look at one election: its candidates, and how each term ended",
		"  esc  ←        back",
		"  w             show another time: 1 min, 10 min, 1 h, 6 h",
		"  q             quit",
		"",
		bold("Signs"),
		"  " + signLed + "  leads     " + signHeir + "  is the heir     " + signVacant + "  nobody leads     " + signForeign + "  another program's lock     " + signUnknown + "  not seen",
		"  " + signOver + "  hands over to its heir, without a gap",
		"  " + signLost + "  lost: it had an heir, and did not hand over: killed, frozen or cut off",
		"",
		"  TERMS  began within the last 10 minutes; 6 or more are flapping",
		"  ~ and >  about, and at least: it had begun before elect top was started",
		"",
		soft("any key goes back"),
	}
}
