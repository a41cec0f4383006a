package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/electkv/election/internal/oracle"
)

// oneLeader is how the rule about it calls its promise.
func oneLeader() string { return oracle.OneLeader(oracle.Evidence{}).Promise }

// fenceHolds is how the rule about the fence calls its promise.
func fenceHolds() string { return oracle.FenceHolds(oracle.Evidence{}).Promise }

// alarms returns what the results show that must not be.
func (r *results) alarms() []string {
	found := []string{}
	alarm := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	for _, store := range r.Stores {
		for _, f := range slices.Concat(r.Faults[store], r.Soak[store]) {
			for _, wrong := range f.alarms() {
				alarm("%s: %s %s: %s", store, f.label(), f.Fault, wrong)
			}
		}
		for _, f := range r.Bugs[store] {
			for _, wrong := range f.alarms() {
				alarm("%s: planted bug %q was not caught in %s %s: %s", store, f.Bug, f.label(), f.Fault, wrong)
			}
		}
		if l, ok := r.Linear[store]; ok && !l.Kept {
			alarm("%s: its answers cannot be told as one story: %s", store, l.Detail)
		}
	}
	if s := r.Simulation; s != nil && s.Overlaps > 0 {
		alarm("simulation: %d overlaps", s.Overlaps)
	}
	for _, p := range r.Planted {
		if !p.Caught {
			alarm("planted bug %q: the rule %q did not see it", p.Bug, p.Rule)
		}
	}
	return found
}

// alarms returns what is wrong with a row. It does not take the row's own word
// that nothing is.
func (f fault) alarms() []string {
	if !f.Applies {
		return nil
	}
	if f.Verdict == "no" {
		if len(f.Wrong) > 0 {
			return []string{strings.Join(f.Wrong, "; ")}
		}
		return []string{"it was not as expected"}
	}
	_, red := f.remedy()
	broken := slices.DeleteFunc(f.Findings.Broken(), func(found oracle.Finding) bool { return slices.Contains(f.May, found.Promise) })
	switch {
	case len(f.May) > 0 && f.about(fenceHolds()) != oracle.Kept:
		return []string{"what the store may break was not shown to end at the fence"}
	case red && len(broken) == 0:
		return []string{"it should be red, and nothing is broken"}
	case !red && len(broken) > 0:
		return []string{broken[0].Promise + ": " + broken[0].Detail}
	case f.Overlaps > f.expectedOverlaps():
		return []string{fmt.Sprintf("%d overlaps", f.Overlaps)}
	}
	return nil
}

// expectedOverlaps returns how many of the overlaps nobody promised to prevent:
// the row was played without what prevents them, or the store may let them happen
// by its nature, or the rule found them to be an
// operator's doing.
func (f fault) expectedOverlaps() int {
	if _, red := f.remedy(); red || slices.Contains(f.May, oneLeader()) || f.about(oneLeader()) == oracle.Kept {
		return f.Overlaps
	}
	return 0
}
