package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// A delay is how long leaders were waited for on a store, of all waits that
// ended with the same promise.
type delay struct {
	Store string
	Bound time.Duration
	After list            // what they were waited for after
	Took  []time.Duration // sorted
}

// delays gathers the waits of the rows that were expected green. Where somebody
// led already, nobody was waited for.
func (r *results) delays() []delay {
	all := []delay{}
	for _, store := range r.Stores {
		byBound := map[time.Duration]*delay{}
		for _, f := range r.Faults[store] {
			if _, red := f.remedy(); red {
				continue
			}
			for _, w := range f.Waits {
				if w.Took == 0 {
					continue
				}
				d := byBound[w.Bound]
				if d == nil {
					d = &delay{Store: store, Bound: w.Bound}
					byBound[w.Bound] = d
				}
				d.After.add(plain(w.After))
				d.Took = append(d.Took, w.Took)
			}
		}
		for _, d := range byBound {
			slices.Sort(d.Took)
			all = append(all, *d)
		}
	}
	slices.SortStableFunc(all, func(a, b delay) int {
		if a.Store != b.Store {
			return slices.Index(r.Stores, a.Store) - slices.Index(r.Stores, b.Store)
		}
		return cmp.Compare(a.Bound, b.Bound)
	})
	return all
}

// percentile returns the smallest of the sorted values that p of a hundred of
// them do not exceed (the nearest rank). It is not ok if there are too few
// values to tell it from the largest.
func percentile(sorted []time.Duration, p int) (d time.Duration, ok bool) {
	if p < 1 || p > 99 || len(sorted) == 0 {
		return 0, false
	}
	rank := (len(sorted)*p + 99) / 100
	return sorted[rank-1], rank < len(sorted)
}

// seconds writes a time down. The largest Duration stands for one that never
// came.
func seconds(d time.Duration) string {
	switch {
	case d == math.MaxInt64:
		return "never"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

// delayTable shows the delays against what was promised.
func (r *results) delayTable() string {
	rows := [][]string{}
	for _, d := range r.delays() {
		longest := d.Took[len(d.Took)-1]
		share := "–"
		if longest < math.MaxInt64 {
			share = fmt.Sprintf("%.0f %%", 100*float64(longest)/float64(d.Bound))
		}
		rows = append(rows, []string{d.Store, d.After.String(), seconds(d.Bound), fmt.Sprint(len(d.Took)), rank(d.Took, 50), rank(d.Took, 99), seconds(longest), share})
	}
	return table([]string{"store", "after", "promised within", "n", "p50", "p99", "max", "max of promised"}, rows)
}

// rank writes down a percentile, or that there are too few values.
func rank(sorted []time.Duration, p int) string {
	d, ok := percentile(sorted, p)
	if !ok {
		return "too few"
	}
	return seconds(d)
}
