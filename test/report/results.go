package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/electkv/election/internal/oracle"
)

// The stores that a whole proof is about. One without results is reported as
// not run.
func stores() []string {
	return []string{
		"file",
		"etcd", "etcd3", "etcd-observed",
		"consul", "consul3", "consul-observed",
		"redis", "redis-sentinel", "redis-cluster", "redis-observed",
		"sqlite", "postgres", "postgres-observed", "mariadb",
		"paxos",
	}
}

// results is what a run left in its folder. What is nil was not there.
type results struct {
	Setting    *setting
	Stores     []string // the known ones, then others that were found
	Faults     map[string][]fault
	Bugs       map[string][]fault // rows that are red for a planted bug
	Soak       map[string][]fault // stretches of faults at random
	Linear     map[string]linear
	Simulation *simulation
	Planted    []planted
}

// A fault is a row of the fault table, played on a store.
type fault struct {
	Store    string
	Number   int
	Letter   string // if the number has several rows
	Fault    string
	Bug      string // planted in it
	Applies  bool
	Reason   string   // why it does not
	Expected string   // green, or red without what, or may be red since what
	May      []string // the promises that the store may break by its nature
	Verdict  string   // yes, or no: whether it was as expected
	Wrong    []string
	Terms    int
	Overlaps int
	Refused  int
	Requests int
	Waits    []wait
	Findings oracle.Findings
	History  string
}

// A wait is how long a leader was waited for; see [oracle.Wait].
type wait struct {
	After string
	Took  time.Duration `json:"took_ns"`
	Bound time.Duration `json:"bound_ns"`
}

// linear is the search for one story in what several clients of a store saw.
type linear struct {
	Store      string
	Seed       uint64
	Operations int
	Unknown    int
	Names      int
	Faults     int
	Kept       bool
	Detail     string
}

// simulation is elections in fake time.
type simulation struct {
	Seed           uint64
	Schedules      int
	Lined          int // of them, with stores that have lines
	Terms          int
	InLine         int // terms in those
	OldClients     int // in line there
	Lost           int // terms that ended against their leader's will
	Fenced         int // writes that the resource refused
	Overlaps       int
	Forced         int // overlaps by an operator's hand
	Requests       int
	SimulatedHours float64
	Rules          map[string]int // how much each rule looked at
}

// planted is a bug that a rule has to see.
type planted struct {
	Bug       string
	Rule      string
	Caught    bool
	Schedules int // until it was
	Detail    string
}

// load reads a folder of results. It refuses what it does not understand: a
// figure that was misread would be a lie.
func load(dir string) (*results, error) {
	if info, err := os.Stat(dir); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is no folder", dir)
	}
	r := &results{Stores: stores(), Faults: map[string][]fault{}, Bugs: map[string][]fault{}, Soak: map[string][]fault{}, Linear: map[string]linear{}}
	err := errors.Join(
		one(filepath.Join(dir, settingFile), &r.Setting),
		one(filepath.Join(dir, "simulation.json"), &r.Simulation),
		one(filepath.Join(dir, "planted.json"), &r.Planted),
		each(dir, "faults-", ".ndjson", func(store, file string) error { return r.addFaults(r.Faults, store, file) }),
		each(dir, "bugs-", ".ndjson", func(store, file string) error { return r.addFaults(r.Bugs, store, file) }),
		each(dir, "linear-", ".json", r.addLinear),
		each(dir, "soak-", ".ndjson", func(store, file string) error { return r.addFaults(r.Soak, store, file) }),
	)
	if err != nil {
		return nil, err
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	return r, nil
}

// one reads a file that holds one JSON value, if there is such a file.
func one(file string, into any) error {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// each calls read for each store that the folder has a file of.
func each(dir, prefix, suffix string, read func(store, file string) error) error {
	files, err := filepath.Glob(filepath.Join(dir, prefix+"*"+suffix))
	if err != nil {
		return err
	}
	for _, file := range files {
		store := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), prefix), suffix)
		if err := read(store, file); err != nil {
			return err
		}
	}
	return nil
}

// know takes a store into the list.
func (r *results) know(store string) {
	if !slices.Contains(r.Stores, store) {
		r.Stores = append(r.Stores, store)
	}
}

func (r *results) addLinear(store, file string) error {
	r.know(store)
	var l *linear
	if err := one(file, &l); err != nil {
		return err
	}
	if l == nil {
		return fmt.Errorf("%s: it holds nothing", file)
	}
	r.Linear[store] = *l
	return nil
}

// addFaults reads the rows of a store, which were played in any order.
func (r *results) addFaults(to map[string][]fault, store, file string) error {
	r.know(store)
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	in := json.NewDecoder(bytes.NewReader(text))
	for {
		var f fault
		err := in.Decode(&f)
		if errors.Is(err, io.EOF) {
			slices.SortFunc(to[store], fault.compare)
			return nil
		}
		if err == nil {
			err = f.check(store)
		}
		if err == nil && slices.ContainsFunc(to[store], func(g fault) bool { return g.compare(f) == 0 }) {
			err = fmt.Errorf("row %s is there twice: the folder holds more than one run", f.label())
		}
		if err != nil {
			return fmt.Errorf("%s: result %d: %w", file, len(to[store])+1, err)
		}
		to[store] = append(to[store], f)
	}
}

// label returns the row's number, with its letter.
func (f fault) label() string { return fmt.Sprintf("%02d%s", f.Number, f.Letter) }

func (f fault) compare(g fault) int {
	return cmp.Or(cmp.Compare(f.Number, g.Number), cmp.Compare(f.Letter, g.Letter), cmp.Compare(f.Bug, g.Bug))
}

const (
	redWithout = "red without "
	greenWith  = "green with "
	mayBeRed   = "may be red: "
)

// remedy returns what the row was played without, so that it had to be red.
func (f fault) remedy() (what string, ok bool) { return strings.CutPrefix(f.Expected, redWithout) }

// because returns how the store may break what is in May, by luck.
func (f fault) because() (why string, ok bool) { return strings.CutPrefix(f.Expected, mayBeRed) }

// about returns what a rule said of a promise, or that it said nothing.
func (f fault) about(promise string) oracle.Verdict {
	if found, ok := f.Findings.Of(promise); ok {
		return found.Verdict
	}
	return oracle.Silent
}

// check refuses a result that lacks what the report rests on.
func (f fault) check(store string) error {
	remedy, red := f.remedy()
	why, may := f.because()
	switch {
	case f.Store != store:
		return fmt.Errorf("it is of %q", f.Store)
	case f.Number < 1 || f.Fault == "":
		return errors.New("it has no number or no name")
	case !f.Applies && f.Reason == "":
		return errors.New("it does not say why it does not apply")
	case !f.Applies:
		return nil
	case f.Verdict != "yes" && f.Verdict != "no":
		return fmt.Errorf("its verdict is %q", f.Verdict)
	case f.Expected != "green" && !strings.HasPrefix(f.Expected, greenWith) && (!red || remedy == "") && (!may || why == ""):
		return fmt.Errorf("it expects %q", f.Expected)
	case may != (len(f.May) > 0):
		return fmt.Errorf("it expects %q, and names %d promises that may be broken", f.Expected, len(f.May))
	case len(f.Findings) == 0:
		return errors.New("it has no findings")
	case f.Terms < 0 || f.Overlaps < 0 || f.Refused < 0 || f.Requests < 0:
		return errors.New("it counts less than nothing")
	case f.History != "" && !filepath.IsLocal(f.History):
		return fmt.Errorf("its history is outside the folder: %s", f.History)
	}
	for _, w := range f.Waits {
		if w.Took < 0 || w.Bound <= 0 {
			return fmt.Errorf("a wait of %v, promised within %v", w.Took, w.Bound)
		}
	}
	for _, found := range f.Findings {
		if found.Promise == "" || found.Verdict != oracle.Kept && found.Verdict != oracle.Broken && found.Verdict != oracle.Silent {
			return fmt.Errorf("a finding about %q is %q", found.Promise, found.Verdict)
		}
	}
	return nil
}

// check refuses results that say nothing.
func (r *results) check() error {
	if s := r.Simulation; s != nil && (s.Schedules < 1 || s.Terms < 1) {
		return errors.New("simulation.json: it simulated nothing")
	}
	if r.Planted != nil && len(r.Planted) == 0 {
		return errors.New("planted.json: there is no bug in it")
	}
	for _, p := range r.Planted {
		if p.Bug == "" || p.Rule == "" {
			return errors.New("planted.json: a bug or its rule has no name")
		}
	}
	for store, l := range r.Linear {
		if l.Store != store || l.Operations < 1 {
			return fmt.Errorf("linear-%s.json: %d operations on %q", store, l.Operations, l.Store)
		}
	}
	return nil
}
