package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/electkv/election/internal/oracle"
)

// promiseTable shows how often each promise was looked at.
func (r *results) promiseTable() string {
	rows := [][]string{}
	for _, promise := range r.promises() {
		kept, expected, broken := 0, 0, 0
		for _, store := range r.Stores {
			for _, f := range r.Faults[store] {
				_, red := f.remedy()
				switch verdict := f.about(promise); {
				case verdict == oracle.Kept:
					kept++
				case verdict == oracle.Broken && (red || slices.Contains(f.May, promise)) && len(f.alarms()) == 0:
					expected++
				case verdict == oracle.Broken:
					broken++
				}
			}
		}
		simulated := "not run"
		if r.Simulation != nil {
			simulated = fmt.Sprint(r.Simulation.Rules[promise])
		}
		rows = append(rows, []string{plain(promise), simulated, fmt.Sprint(kept), fmt.Sprint(expected), fmt.Sprint(broken)})
	}
	return table([]string{"promise", "simulation: looked at", "real faults: kept", "broken as expected", "broken"}, rows)
}

// promises returns the promises of all rules, and others that were judged.
func (r *results) promises() []string {
	all := list{}
	for _, rule := range oracle.All() {
		all.add(rule(oracle.Evidence{}).Promise)
	}
	for _, store := range r.Stores {
		for _, f := range r.Faults[store] {
			for _, found := range f.Findings {
				all.add(found.Promise)
			}
		}
	}
	if r.Simulation != nil {
		for _, promise := range slices.Sorted(maps.Keys(r.Simulation.Rules)) {
			all.add(promise)
		}
	}
	return all
}

// bugTable shows which rule of the simulation saw which bug.
func (r *results) bugTable() string {
	rows := [][]string{}
	for _, p := range r.Planted {
		caught := "yes"
		if !p.Caught {
			caught = "**no**"
		}
		rows = append(rows, []string{plain(p.Bug), plain(p.Rule), caught, fmt.Sprint(p.Schedules), plain(p.Detail)})
	}
	return table([]string{"planted bug", "rule", "caught", "schedules", "what it says"}, rows)
}

// realBugTable shows which promises each bug broke on real servers.
func (r *results) realBugTable() string {
	rows := [][]string{}
	for _, store := range r.Stores {
		for _, f := range r.Bugs[store] {
			caught := "yes"
			if len(f.alarms()) > 0 {
				caught = "**no**"
			}
			broken := list{}
			for _, found := range f.Findings.Broken() {
				broken.add(plain(found.Promise))
			}
			rows = append(rows, []string{plain(f.Bug), store, plain(f.Fault), caught, broken.String()})
		}
	}
	return table([]string{"planted bug", "store", "fault", "caught", "broken"}, rows)
}

// linearTable shows the searches for one story.
func (r *results) linearTable() string {
	rows := [][]string{}
	for _, store := range r.Stores {
		l, ok := r.Linear[store]
		if !ok {
			rows = append(rows, append([]string{store, "not run"}, slices.Repeat([]string{"–"}, 5)...))
			continue
		}
		verdict := "yes"
		if !l.Kept {
			verdict = "**no**: " + plain(l.Detail)
		}
		rows = append(rows, []string{store, verdict, fmt.Sprint(l.Operations), fmt.Sprint(l.Unknown), fmt.Sprint(l.Names), fmt.Sprint(l.Faults), fmt.Sprint(l.Seed)})
	}
	return table([]string{"store", "linearizable", "operations", "outcome unknown", "safes", "faults", "seed"}, rows)
}
