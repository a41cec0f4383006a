package top

import (
	"fmt"
	"time"

	"github.com/electkv/election/cmd/elect/internal/chronicle"
)

// roster returns a line for each candidate that is known to take part, and no line if none is.
func (m *Model) roster(e *chronicle.Election) []string {
	if e.Unlisted != "" {
		return []string{"", soft("  CANDIDATES"), "  the roster cannot be read: " + clean(e.Unlisted)}
	}
	if len(e.Candidates) == 0 {
		return nil
	}
	width := 16
	for _, c := range e.Candidates {
		width = max(width, len([]rune(c.ID))+2)
	}
	width = min(width, max(m.width/4, 16))
	row := func(who, is, rank, came, value string) string {
		return "  " + fit(who, width) + " " + fit(is, 9) + " " + fit(rank, 6) + " " + fit(came, 14) + " " + value
	}
	lines := []string{"", soft(row(fmt.Sprintf("CANDIDATES %d", e.CandidateCount), "ROLE", "RANK", "CAME", "VALUE"))}
	for _, c := range e.Candidates {
		who, rank, came := named(c.ID, clean(c.ID)), fmt.Sprint(c.Rank), "-"
		if !c.Since.IsZero() {
			came = "~" + lasting(time.Since(c.Since)) + " ago"
		}
		if c.Foreign {
			who, rank = "(a record)", "-"
		}
		lines = append(lines, row(who, e.Standing(c), rank, came, clean(c.Value)))
	}
	if left := e.CandidateCount - len(e.Candidates); left > 0 {
		lines = append(lines, soft(fmt.Sprintf("  and %d more", left)))
	}
	return lines
}
