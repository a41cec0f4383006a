package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"
)

//go:embed RESULTS.md.tmpl
var reportText string

// A report is results as RESULTS.md shows them.
type report struct {
	results
	Files  []source
	Works  []chapter
	Goals  []verdict
	Plots  []string
	Before comparison
}

// A source is a file of results that is reported.
type source struct {
	results
	File string // relative to the report
}

// A chapter is a work in the report.
type chapter struct {
	Title, About, TTL string
	Tables            []table
}

// A table is a work in one setting.
type table struct {
	Setting string
	Head    []string
	Rows    [][]string
	Notes   []string
}

// writeReport writes RESULTS.md and the plots of results files.
func writeReport(o options, paths []string) error {
	r, files, err := merge(o, paths)
	if err != nil {
		return err
	}
	rep := report{results: r, Files: files, Goals: judge(r)}
	if rep.Before, err = compare(o, r); err != nil {
		return err
	}
	for _, w := range works() {
		if c := chapterOf(r, w); len(c.Tables) > 0 {
			rep.Works = append(rep.Works, c)
		}
	}
	if rep.Plots, err = writePlots(r, o.out); err != nil {
		return err
	}
	tmpl, err := template.New("RESULTS.md").Funcs(template.FuncMap{
		"row":      func(cells []string) string { return "| " + strings.Join(cells, " | ") + " |" },
		"rule":     func(cells []string) string { return "|" + strings.Repeat("---|", len(cells)) },
		"how":      how,
		"settings": serverSettings,
		"sorted":   func(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) },
		"bytes":    func(n uint64) string { return format(float64(n), octets) },
		"date":     func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") },
	}).Parse(reportText)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := tmpl.Execute(&text, rep); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.out, "RESULTS.md"), text.Bytes(), 0o644)
}

// how tells how the contenders of a store that were run are run.
func how(r report, store string) []contender {
	var all []contender
	for _, c := range contenders() {
		if c.Store == store && slices.ContainsFunc(r.Runs, func(run run) bool { return run.Store == store && run.Contender == c.Name }) {
			all = append(all, c)
		}
	}
	return all
}

func chapterOf(r results, w work) chapter {
	c := chapter{Title: w.title, About: w.about}
	var seen []setting
	for _, run := range r.Runs {
		if run.Work != w.name || slices.Contains(seen, run.Setting) {
			continue
		}
		seen = append(seen, run.Setting)
		c.TTL = run.TTL
		c.Tables = append(c.Tables, tableOf(r, w, run.Setting))
	}
	return c
}

func tableOf(r results, w work, s setting) table {
	t := table{Setting: s.String(), Head: []string{"store", "contender"}}
	shown := slices.DeleteFunc(slices.Clone(w.metrics), func(m metric) bool {
		return !slices.ContainsFunc(r.Runs, func(run run) bool {
			_, ok := run.Metrics[m.Name]
			return ok && run.Work == w.name && run.Setting == s
		})
	})
	limits := slices.ContainsFunc(r.Runs, func(run run) bool { return run.Work == w.name && run.Contender == "limit" })
	for i, m := range shown {
		t.Head = append(t.Head, m.Title)
		if m.Ranked {
			t.Head = append(t.Head, "÷ best peer")
		}
		if i == 0 && limits {
			t.Head = append(t.Head, "÷ limit")
		}
	}
	for _, c := range contenders() {
		runs := r.of(w.name, c.Store, c.Name, s)
		if len(runs) == 0 {
			continue
		}
		row := []string{c.Store, c.Name}
		for i, m := range shown {
			row = append(row, cell(runs, m))
			if m.Ranked {
				row = append(row, ratio(r.median(w.name, c.Store, c.Name, s, m.Name), r.bestPeer(w.name, c.Store, s, m.Name)))
			}
			if i == 0 && limits {
				row = append(row, ratio(r.median(w.name, c.Store, c.Name, s, m.Name), r.limit(w.name, c.Store, s, m.Name)))
			}
		}
		t.Rows = append(t.Rows, row)
		t.Notes = append(t.Notes, notesOf(c, runs)...)
	}
	return t
}

func notesOf(c contender, runs []run) []string {
	var notes []string
	for _, run := range runs {
		for _, note := range append(slices.Clone(run.Notes), run.Error) {
			line := fmt.Sprintf("%s, %s: %s", c.Store, c.Name, strings.ReplaceAll(note, "\n", " "))
			if note != "" && !slices.Contains(notes, line) {
				notes = append(notes, line)
			}
		}
	}
	return notes
}

// cell shows the median of the runs' medians, and from which p10 to which p90 they go.
func cell(runs []run, m metric) string {
	median := medianOf(runs, m.Name)
	if math.IsNaN(median) {
		return "–"
	}
	low, high, n := math.Inf(1), math.Inf(-1), 0
	for _, run := range runs {
		if s, ok := run.Metrics[m.Name]; ok {
			low, high, n = min(low, s.P10), max(high, s.P90), n+s.N
		}
	}
	if n == 1 {
		return format(median, m.Unit)
	}
	return fmt.Sprintf("%s (%s – %s)", format(median, m.Unit), format(low, m.Unit), format(high, m.Unit))
}

func ratio(x, of float64) string {
	if math.IsNaN(x) || math.IsNaN(of) || of == 0 {
		return "–"
	}
	return digits(x / of)
}

// medianOf returns the median of the runs' medians, NaN if none has that metric.
func medianOf(runs []run, metric string) float64 {
	var medians []float64
	for _, run := range runs {
		if s, ok := run.Metrics[metric]; ok {
			medians = append(medians, s.Median)
		}
	}
	if len(medians) == 0 {
		return math.NaN()
	}
	return summarize(medians).Median
}

func (r results) of(work, store, contender string, s setting) []run {
	var all []run
	for _, run := range r.Runs {
		if run.Work == work && run.Store == store && run.Contender == contender && run.Setting == s {
			all = append(all, run)
		}
	}
	return all
}

func (r results) median(work, store, contender string, s setting, metric string) float64 {
	return medianOf(r.of(work, store, contender, s), metric)
}

// bestPeer returns the least median of the store's peers, NaN if there is none.
func (r results) bestPeer(work, store string, s setting, metric string) float64 {
	best := math.NaN()
	for _, c := range contenders() {
		if c.Store == store && c.Kind == peer {
			if x := r.median(work, store, c.Name, s, metric); !math.IsNaN(x) && !(x >= best) {
				best = x
			}
		}
	}
	return best
}

// limit returns the median of the store's limit, in a setting with as many processes
// if there is one: the limit does not grow with the candidates.
func (r results) limit(work, store string, s setting, metric string) float64 {
	for _, same := range []bool{true, false} {
		for _, run := range r.Runs {
			if run.Work == work && run.Store == store && run.Contender == "limit" && (!same || (run.Setting.Processes == 1) == (s.Processes == 1)) {
				return r.median(work, store, "limit", run.Setting, metric)
			}
		}
	}
	return math.NaN()
}
