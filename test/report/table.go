package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// table returns a table in Markdown, or that there is nothing to show.
func table(head []string, rows [][]string) string {
	if len(rows) == 0 {
		return "**Not run:** the results hold nothing of this.\n"
	}
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(head)
	line(slices.Repeat([]string{"---"}, len(head)))
	for _, row := range rows {
		line(row)
	}
	return b.String()
}

// plain returns a text of the results as it stands in Markdown, on one line.
func plain(text string) string {
	marks := []string{"&", "&amp;", "<", "&lt;", ">", "&gt;"}
	for _, mark := range []string{`\`, "|", "*", "_", "`", "[", "]"} {
		marks = append(marks, mark, `\`+mark)
	}
	return strings.NewReplacer(marks...).Replace(strings.Join(strings.Fields(text), " "))
}

// notes numbers the texts that are too long for a table's cells.
type notes list

func (n *notes) ref(text string) string {
	(*list)(n).add(text)
	return fmt.Sprintf("<sup>%d</sup>", slices.Index(*n, text)+1)
}

// String returns the notes, as a numbered list.
func (n *notes) String() string {
	var b strings.Builder
	for i, text := range *n {
		fmt.Fprintf(&b, "%d. %s\n", i+1, text)
	}
	return b.String()
}

// faultTable shows the rows of the fault table against the stores, and the
// notes that it refers to.
func (r *results) faultTable() string {
	head := []string{"", "fault"}
	rows := map[string]fault{} // by label: any store's
	for _, store := range r.Stores {
		head = append(head, store)
		for _, f := range r.Faults[store] {
			rows[f.label()] = f
		}
	}
	n := notes{}
	lines := [][]string{}
	for _, row := range slices.SortedFunc(maps.Values(rows), fault.compare) {
		line := []string{row.label(), plain(row.Fault)}
		for _, store := range r.Stores {
			line = append(line, r.cell(store, row.label(), &n))
		}
		lines = append(lines, line)
	}
	return table(head, lines) + "\n" + n.String()
}

// cell says how a row went on a store.
func (r *results) cell(store, label string, n *notes) string {
	i := slices.IndexFunc(r.Faults[store], func(f fault) bool { return f.label() == label })
	if i < 0 {
		return "not run"
	}
	f := r.Faults[store][i]
	remedy, red := f.remedy()
	why, may := f.because()
	switch {
	case !f.Applies:
		return "n/a " + n.ref("does not apply: "+plain(f.Reason))
	case len(f.alarms()) > 0:
		return "**no**"
	case red:
		return "red " + n.ref("red, as it must be, without "+plain(remedy))
	case may && len(f.Findings.Broken()) > 0:
		return "may be red " + n.ref("red this time, by luck: "+plain(why))
	case may:
		return "may be red " + n.ref("green this time, by luck: "+plain(why))
	}
	return "yes"
}

// countTable shows what the rows of each store came to, of the fault table or of
// the soak.
func (r *results) countTable(what string, rows map[string][]fault) string {
	lines := [][]string{}
	for _, store := range r.Stores {
		played, good := score(rows[store])
		terms, overlaps, expected, refused, requests := 0, 0, 0, 0, 0
		for _, f := range rows[store] {
			terms += f.Terms
			overlaps += f.Overlaps
			expected += f.expectedOverlaps()
			refused += f.Refused
			requests += f.Requests
		}
		if played == 0 {
			lines = append(lines, append([]string{store, "not run"}, slices.Repeat([]string{"–"}, 6)...))
			continue
		}
		line := []string{store}
		for _, n := range []int{played, good, terms, overlaps - expected, expected, refused, requests} {
			line = append(line, fmt.Sprint(n))
		}
		lines = append(lines, line)
	}
	return table([]string{"store", what + " played", "as expected", "terms", "overlaps", "expected overlaps", "stale writes refused", "requests"}, lines)
}
