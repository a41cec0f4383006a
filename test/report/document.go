package main

import (
	"bytes"
	"embed"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"
)

// The pages of the report: the one that it begins with, and those behind it.
//
//go:embed pages
var pages embed.FS

// front is the template of the first page.
const front = "reliability.md.tmpl"

// A document is what the templates are filled with. Its tables are Markdown.
type document struct {
	*results
	Front, Folder string // names of the first page and of the folder of the others
	Claims        []section
	Pictures      []picture
	Undrawn       []picture // those of which there are none

	Alarms, Missing []string
	Played, Good    int // rows of the fault table, on all stores
	Terms, Overlaps int // in those rows, without overlaps that a row expects
	Caught          int // of the planted bugs, in the simulation
	Real, RealGood  int // planted bugs on real servers, and those that were caught
	Whole           int // stores that are linearizable

	Matrix, FaultTable, Delays, Counts, Promises, Bugs, RealBugs, Linearity, Soaks string
}

// publish writes the report, and the pages and pictures behind it into a folder of its name.
// The claims are quoted from doc.
func publish(r *results, dir, doc, file string) error {
	claims, err := claims(doc)
	if err != nil {
		return err
	}
	folder := strings.TrimSuffix(file, filepath.Ext(file))
	if err := empty(folder); err != nil {
		return err
	}
	pictures, err := r.draw(dir, folder)
	if err != nil {
		return err
	}
	t, err := template.New("report").Funcs(template.FuncMap{
		"plain": plain,
		"day":   func(t time.Time) string { return t.Format(time.DateOnly) },
	}).ParseFS(pages, "pages/*")
	if err != nil {
		return err
	}
	d := newDocument(r, claims, pictures)
	d.Front, d.Folder = filepath.Base(file), filepath.Base(folder)
	for _, page := range t.Templates() {
		to := file
		if name := page.Name(); name != front {
			to = filepath.Join(folder, strings.TrimSuffix(name, ".tmpl"))
		}
		var b bytes.Buffer
		if err := page.Execute(&b, d); err != nil {
			return err
		}
		if err := os.WriteFile(to, b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// empty makes a folder, or removes the pages and pictures that are in it.
func empty(folder string) error {
	for _, kind := range []string{"*.svg", "*.md"} {
		old, err := filepath.Glob(filepath.Join(folder, kind))
		if err != nil {
			return err
		}
		for _, file := range old {
			if err := os.Remove(file); err != nil {
				return err
			}
		}
	}
	return os.MkdirAll(folder, 0o755)
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
		for _, f := range r.Faults[store] {
			d.Terms, d.Overlaps = d.Terms+f.Terms, d.Overlaps+f.Overlaps-f.expectedOverlaps()
		}
		played, good = score(r.Bugs[store])
		d.Real, d.RealGood = d.Real+played, d.RealGood+good
	}
	for _, p := range pictures {
		if p.Missing != "" {
			d.Undrawn = append(d.Undrawn, p)
		}
	}
	for _, l := range r.Linear {
		if l.Kept {
			d.Whole++
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
