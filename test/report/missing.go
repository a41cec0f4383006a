package main

import (
	"fmt"
	"slices"
	"strings"
)

// planned is the last number of a fault of the plan. The rows of the fault table have its
// numbers, and the soak has one of them.
const (
	planned = 56
	soak    = 54
)

// elsewhere says of faults of the plan why the table has no row for them.
func elsewhere() map[int]string {
	return map[int]string{
		28: "the clients' wall clocks: nothing reads them on Linux",
		31: "suspend: left to the simulation",
	}
}

// missing returns what a whole proof has, and these results have not.
func (r *results) missing() []string {
	gone := []string{}
	lacks := func(missing bool, what string) {
		if missing {
			gone = append(gone, what)
		}
	}
	without := func(has func(store string) bool) string {
		return strings.Join(slices.DeleteFunc(slices.Clone(r.Stores), has), ", ")
	}
	lacks(r.Setting == nil, "what the run was made with (setting.json)")
	lacks(r.Simulation == nil, "the simulation (simulation.json)")
	lacks(r.Planted == nil, "the planted bugs in the simulation (planted.json)")
	lacks(len(r.Bugs) == 0, "planted bugs on real servers")
	faults := without(func(store string) bool { return len(r.Faults[store]) > 0 })
	lacks(faults != "", "faults on "+faults)
	linear := without(func(store string) bool { _, ok := r.Linear[store]; return ok })
	lacks(linear != "", "linearizability of "+linear)
	soak := without(func(store string) bool { return len(r.Soak[store]) > 0 })
	lacks(soak != "", "the soak of "+soak)
	rows, unplayed := r.unplayed()
	lacks(len(rows) > 0, "these faults of the plan, on any store: "+strings.Join(rows, "; "))
	lacks(unplayed > 0, fmt.Sprintf("%d rows on some of the stores: \"not run\" in the table", unplayed))
	return gone
}

// unplayed returns the faults of the plan that no store has a row of, and how
// often a row that some store has is missing on another.
func (r *results) unplayed() (numbers []string, cells int) {
	stores := map[string]int{} // of which there is a row, by its label
	known := map[int]bool{}
	for _, store := range r.Stores {
		for _, f := range r.Faults[store] {
			stores[f.label()]++
			known[f.Number] = true
		}
	}
	for number := 1; number <= planned; number++ {
		if why, ok := elsewhere()[number]; known[number] || number == soak {
			continue
		} else if ok {
			numbers = append(numbers, fmt.Sprintf("%d (%s)", number, why))
		} else {
			numbers = append(numbers, fmt.Sprint(number))
		}
	}
	for _, n := range stores {
		cells += len(r.Stores) - n
	}
	return numbers, cells
}
