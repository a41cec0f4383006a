package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// An event is a line of go test -json; see "go doc test2json".
type event struct {
	Time    time.Time
	Action  string
	Package string
	Test    string
	Output  string
}

// A tally is the number of tests of a package by their outcome.
type tally struct{ passed, failed, skipped int }

// A count gathers the outcomes of tests.
type count struct {
	note     func(event) // is told of each
	packages map[string]*tally
	holders  map[event]bool     // tests that hold others, by package and name
	said     map[event][]string // what tests said that have not ended yet

	began    map[event]time.Time
	says     map[event]*strings.Builder // what a test and those in it said
	failures []failure                  // of tests that no others hold
	broken   bool                       // a package failed, and no test of it
}

func newCount() *count {
	return &count{
		note:     func(event) {},
		packages: map[string]*tally{},
		holders:  map[event]bool{},
		said:     map[event][]string{},
		began:    map[event]time.Time{},
		says:     map[event]*strings.Builder{},
	}
}

// read counts the events in r and writes to w what go test would have printed
// without -json: what packages say, what failed tests say, and figures.
func (c *count) read(r io.Reader, w io.Writer) error {
	for d := json.NewDecoder(r); ; {
		var e event
		err := d.Decode(&e)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read what go test says: %w", err)
		}
		c.add(e, w)
	}
}

// figures begins a line that a test prints of what it has measured: it is shown
// whether or not the test passes.
const figures = "simulation: "

func (c *count) add(e event, w io.Writer) {
	test := event{Package: e.Package, Test: e.Test}
	c.follow(e)
	c.note(e)
	switch e.Action {
	case "build-output":
		fmt.Fprint(w, e.Output)
	case "output":
		switch {
		case e.Test == "" && e.Output != "PASS\n", strings.HasPrefix(e.Output, figures):
			fmt.Fprint(w, e.Output)
		case e.Test != "":
			c.said[test] = append(c.said[test], e.Output)
		}
	case "run":
		if i := strings.LastIndexByte(e.Test, '/'); i >= 0 {
			c.holders[event{Package: e.Package, Test: e.Test[:i]}] = true
		}
	case "pass", "fail", "skip":
		c.end(test, e.Action, w)
	}
}

// follow notes what becomes of the tests that no others hold.
func (c *count) follow(e event) {
	name, _, _ := strings.Cut(e.Test, "/")
	outermost := event{Package: e.Package, Test: name}
	switch {
	case e.Action == "build-output" || e.Action == "build-fail":
		c.broken = true
	case e.Action == "output" && e.Test != "":
		if c.says[outermost] == nil {
			c.says[outermost] = &strings.Builder{}
		}
		c.says[outermost].WriteString(e.Output)
	case e.Action == "run" && e.Test == name:
		c.began[outermost] = e.Time
	case e.Action == "fail" && e.Test == name && name != "":
		var said string
		if b := c.says[outermost]; b != nil {
			said = b.String()
		}
		c.failures = append(c.failures, failure{pkg: e.Package, test: name, from: c.began[outermost], to: e.Time, said: said})
	case e.Action == "fail" && e.Test == "":
		if !slices.ContainsFunc(c.failures, func(f failure) bool { return f.pkg == e.Package }) {
			c.broken = true
			c.failures = append(c.failures, failure{pkg: e.Package, test: "(no test of it failed)", from: e.Time, to: e.Time, said: c.unfinished(e.Package)})
		}
	}
	if e.Test == name && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip") {
		delete(c.says, outermost)
	}
}

// unfinished returns what tests of a package said that have not ended.
func (c *count) unfinished(pkg string) string {
	var all strings.Builder
	for test, said := range c.says {
		if test.Package == pkg {
			all.WriteString(said.String())
		}
	}
	return all.String()
}

// end counts a test that has ended, or a package, whose unfinished tests have
// then ended with it.
func (c *count) end(test event, outcome string, w io.Writer) {
	if test.Test == "" {
		for t, said := range c.said {
			if t.Package == test.Package {
				fmt.Fprint(w, strings.Join(said, ""))
				delete(c.said, t)
			}
		}
		return
	}
	if outcome == "fail" {
		fmt.Fprint(w, strings.Join(c.said[test], ""))
	}
	delete(c.said, test)
	if c.holders[test] {
		return
	}
	t := c.packages[test.Package]
	if t == nil {
		t = &tally{}
		c.packages[test.Package] = t
	}
	switch outcome {
	case "pass":
		t.passed++
	case "fail":
		t.failed++
	case "skip":
		t.skipped++
	}
}

// print writes the table.
func (c *count) print(w io.Writer, took time.Duration) error {
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "tests\tfailed\tskipped\t  package")
	var sum tally
	for _, name := range slices.Sorted(maps.Keys(c.packages)) {
		t := c.packages[name]
		fmt.Fprintf(table, "%d\t%d\t%d\t  %s\n", t.passed+t.failed+t.skipped, t.failed, t.skipped, name)
		sum.passed += t.passed
		sum.failed += t.failed
		sum.skipped += t.skipped
	}
	fmt.Fprintf(table, "%d\t%d\t%d\t  in all, in %v\n", sum.passed+sum.failed+sum.skipped, sum.failed, sum.skipped, took.Round(time.Second))
	return table.Flush()
}
