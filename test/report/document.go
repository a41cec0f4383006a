package main

import (
	_ "embed"
	"os"
	"strings"
	"text/template"
	"time"
)

//go:embed reliability.md.tmpl
var text string

// A document is what the template is filled with. Its tables are Markdown.
type document struct {
	*results
	Claims   []section
	Pictures []picture
	Undrawn  []picture // those of which there are none

	Alarms, Missing []string
	Played, Good    int // rows of the fault table, on all stores
	Caught          int // of the planted bugs, in the simulation
	Real, RealGood  int // planted bugs on real servers, and those that were caught

	Matrix, FaultTable, Delays, Counts, Promises, Bugs, RealBugs, Linearity, Soaks string
}

// publish writes the report and its pictures. The claims are quoted from doc.
func publish(r *results, dir, doc, file string) error {
	claims, err := claims(doc)
	if err != nil {
		return err
	}
	pictures, err := r.draw(dir, file)
	if err != nil {
		return err
	}
	t, err := template.New("report").Funcs(template.FuncMap{
		"plain": plain,
		"day":   func(t time.Time) string { return t.Format(time.DateOnly) },
	}).Parse(text)
	if err != nil {
		return err
	}
	var b strings.Builder
	if err := t.Execute(&b, newDocument(r, claims, pictures)); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

func newDocument(r *results, claims []section, pictures []picture) document {
	d := document{
		results: r, Claims: claims, Pictures: pictures,
		Alarms: r.alarms(), Missing: r.missing(),
		Matrix: r.matrix(), FaultTable: r.faultTable(), Delays: r.delayTable(), Counts: r.countTable("rows", r.Faults),
		Promises: r.promiseTable(), Bugs: r.bugTable(), RealBugs: r.realBugTable(), Linearity: r.linearTable(), Soaks: r.countTable("stretches", r.Soak),
	}
	for _, store := range r.Stores {
		played, good := score(r.Faults[store])
		d.Played, d.Good = d.Played+played, d.Good+good
		played, good = score(r.Bugs[store])
		d.Real, d.RealGood = d.Real+played, d.RealGood+good
	}
	for _, p := range pictures {
		if p.Missing != "" {
			d.Undrawn = append(d.Undrawn, p)
		}
	}
	for _, p := range r.Planted {
		if p.Caught {
			d.Caught++
		}
	}
	return d
}

// score counts the rows that were played, and those that were as expected.
func score(rows []fault) (played, good int) {
	for _, f := range rows {
		if !f.Applies {
			continue
		}
		played++
		if len(f.alarms()) == 0 {
			good++
		}
	}
	return played, good
}
