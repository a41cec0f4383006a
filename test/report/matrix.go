package main

import (
	"slices"
	"strings"

	"github.com/electkv/election/internal/oracle"
)

// A circumstance is a column of the matrix "exclusive under": what befalls, and
// the numbers of the rows of the fault table that bring it about.
type circumstance struct {
	name string
	rows []int
	yes  string // what is said of a store on which all of them are green
}

func circumstances() []circumstance {
	return []circumstance{
		{"clients crash, pause, lose the network or messages", []int{1, 2, 3, 4, 5, 6, 8, 15, 16, 17, 18, 24, 25, 26}, "yes"},
		{"the store restarts", []int{9, 10}, "yes"},
		{"the store loses its data", []int{11}, "yes"},
		{"the store's wall clock jumps", []int{29}, "yes"},
		{"the store fails over", []int{13, 14, 46, 47}, "yes"},
		{"an operator deletes the key", []int{32}, "overlap ≤ one refresh period"},
	}
}

// matrix shows under what each store has one leader at a time.
func (r *results) matrix() string {
	head := []string{"store"}
	for _, c := range circumstances() {
		head = append(head, c.name)
	}
	rows := [][]string{}
	for _, store := range r.Stores {
		row := []string{store}
		for _, c := range circumstances() {
			row = append(row, r.under(c, store))
		}
		rows = append(rows, row)
	}
	return table(head, rows)
}

// nothing is said of a store to which a circumstance cannot happen.
const nothing = "–"

// observed is how the name of a store ends in which candidates judge when a record
// has expired.
const observed = "-observed"

// under returns what is known of a store under a circumstance. What was not
// played on several servers since each is like the one alone is as it is there,
// but where somebody else judges expiry.
func (r *results) under(c circumstance, store string) string {
	verdict := c.judge(r.Faults[store])
	if verdict != nothing || strings.HasSuffix(store, observed) {
		return verdict
	}
	alone, _, _ := strings.Cut(strings.TrimSuffix(store, "3"), "-")
	if verdict = c.judge(r.Faults[alone]); verdict == nothing {
		return nothing
	}
	return verdict + " (as " + alone + ")"
}

// judge returns what the rows of a store say of a circumstance. A row that was
// not run is never a yes, nor is one that was green by luck.
func (c circumstance) judge(rows []fault) string {
	missing, failed, luck, silent, with, without := list{}, list{}, list{}, list{}, list{}, list{}
	applies := false
	for _, number := range c.rows {
		these := slices.DeleteFunc(slices.Clone(rows), func(f fault) bool { return f.Number != number })
		if len(these) == 0 {
			missing.add(fault{Number: number}.label())
		}
		for _, f := range these {
			if !f.Applies {
				continue
			}
			applies = true
			remedy, red := f.remedy()
			why, _ := f.because()
			switch verdict := f.about(oneLeader()); {
			case len(f.alarms()) > 0:
				failed.add(f.label())
			case slices.Contains(f.May, oneLeader()):
				luck.add(why)
			case red && verdict == oracle.Broken && slices.ContainsFunc(these, func(f fault) bool { return f.shows(remedy) }):
				with.add(remedy)
			case red && verdict == oracle.Broken:
				without.add(remedy)
			case verdict != oracle.Kept:
				silent.add(f.label())
			}
		}
	}
	switch {
	case len(failed) > 0:
		return "**no**: " + failed.String()
	case len(without) > 0:
		return "**no** without " + strings.Join(without, "; and without ")
	case len(luck) > 0:
		return "**not always**: " + luck.String()
	case len(missing) == len(c.rows):
		return "not run"
	case len(missing) > 0:
		return "not run: " + missing.String()
	case !applies:
		return nothing
	case len(silent) > 0:
		return "not shown: " + silent.String()
	case len(with) > 0:
		return "only with " + strings.Join(with, "; and ")
	}
	return c.yes
}

// shows reports whether a row shows one leader at a time with a remedy, or with
// one of those that it names.
func (f fault) shows(remedies string) bool {
	remedy, with := strings.CutPrefix(f.Expected, greenWith)
	return f.Applies && with && strings.Contains(remedies, remedy) && f.about(oneLeader()) == oracle.Kept
}

// A list holds texts, each once.
type list []string

func (l *list) add(text string) {
	if !slices.Contains(*l, text) {
		*l = append(*l, text)
	}
}

func (l *list) String() string { return strings.Join(*l, ", ") }
