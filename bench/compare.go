package main

import (
	"math"
	"slices"
)

// A comparison sets what an earlier engine was measured to do beside the present one.
type comparison struct {
	Files []source
	Rows  [][]string
}

// compare compares the first metric of each work, and those that have a goal, of this
// library's own contenders. The figures of the two come from two runs of the bench.
func compare(o options, now results) (comparison, error) {
	before, files, err := merge(o, o.before)
	if err != nil || len(files) == 0 {
		return comparison{}, err
	}
	c := comparison{Files: files}
	for _, w := range works() {
		for i, m := range w.metrics {
			if i > 0 && !slices.ContainsFunc(goals(), func(g goal) bool { return g.work == w.name && g.metric == m.Name }) {
				continue
			}
			c.Rows = append(c.Rows, rows(before, now, w, m)...)
		}
	}
	return c, nil
}

func rows(before, now results, w work, m metric) (rows [][]string) {
	var seen []trialName
	for _, run := range now.Runs {
		what := trialName{run.Work, run.Store, run.Contender, run.Setting}
		if run.Work != w.name || run.Contender != plainName || slices.Contains(seen, what) {
			continue
		}
		seen = append(seen, what)
		was := before.median(w.name, run.Store, run.Contender, run.Setting, m.Name)
		is := now.median(w.name, run.Store, run.Contender, run.Setting, m.Name)
		if math.IsNaN(was) || math.IsNaN(is) {
			continue
		}
		rows = append(rows, []string{w.title + ": " + m.Title, run.Store, run.Setting.String(), format(was, m.Unit), format(is, m.Unit), ratio(is, was)})
	}
	return rows
}
