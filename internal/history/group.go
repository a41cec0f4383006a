package history

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// A Group is what a process was told about the group that it is in. The zero Group means that it is
// in none.
type Group struct {
	Number  string   `json:"number,omitempty"` // never used again
	Leader  string   `json:"leader,omitempty"`
	Members []string `json:"members,omitempty"` // sorted, the leader among them
}

// TimelineOfGroups draws which process led which others when, as [Timeline] draws elections: one row
// per process. The groups are counted, and each stretch that a process was in one begins with
// its count. A leader is a bar, a member is the first letter of its leader.
func TimelineOfGroups(h History, width int) string {
	if len(h.Events) == 0 {
		return "nothing happened\n"
	}
	h.Events = slices.Clone(h.Events)
	h.Sort()
	names := h.Names()
	label := len("fault")
	for _, name := range names {
		label = max(label, len(name))
	}
	d := drawing{label: label, scale: newScale(h, max(width-label-2, 20))}
	counts := countGroups(h)
	for _, name := range names {
		d.line(name, d.member(h.Of(name), counts))
	}
	d.faults(h)
	d.foot()
	return d.out.String()
}

// LegendOfGroups explains a timeline of groups.
func LegendOfGroups() string {
	return "█ leads (the number counts the groups)   a, b … is led by that one   · is in no group   K SIGKILL"
}

// countGroups counts the groups of a sorted history, by number.
func countGroups(h History) map[string]int {
	counts := map[string]int{}
	for _, e := range h.Of("", Joined) {
		if number := e.Group.Number; number != "" && counts[number] == 0 {
			counts[number] = len(counts) + 1
		}
	}
	return counts
}

// member draws the groups of one process.
func (d *drawing) member(events []Event, counts map[string]int) []rune {
	row := d.empty()
	for i, e := range events {
		to := d.end()
		if j := slices.IndexFunc(events[i+1:], changes); j >= 0 {
			to = events[i+1+j].At
		}
		switch {
		case e.Kind == Killed:
			d.fill(row, e.At, to, absent)
			row[d.at(e.At)] = 'K'
		case e.Kind == Ready, e.Kind == Joined && e.Group.Number == "":
			d.fill(row, e.At, to, waiting)
		case e.Kind == Joined:
			mark := leading
			if e.Group.Leader != e.Who {
				mark, _ = utf8.DecodeRuneInString(e.Group.Leader)
			}
			d.fill(row, e.At, to, mark)
			for j, digit := range fmt.Sprint(counts[e.Group.Number]) {
				row[min(d.at(e.At)+j, d.columns-1)] = digit
			}
		}
	}
	return row
}

// changes reports whether a process is in another group after an event, or in none.
func changes(e Event) bool { return e.Kind == Joined || e.Kind == Killed || e.Kind == Ready }
