package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// leastTTL is what etcd grants with its default election timeout.
const leastTTL = 2 * time.Second

// options say what is run, and how large.
type options struct {
	stores, works, contenders  []string
	candidates, elections      []int
	waiters, handovers, cycles int
	crashes, repeat            int
	writes, terms              int
	settle, rest, patience     time.Duration
	ttl                        time.Duration // zero for each work's own
	quick                      bool
	label                      string
	out                        string   // the folder of RESULTS.md and results
	report                     []string // results files to report, and run nothing
	before                     []string // those of an earlier engine, to compare with
	source                     string   // the library's source, for the simulation
}

func defaultOptions() options {
	return options{
		stores: storeNames, works: workNames(),
		candidates: []int{2, 10, 100, 1000}, elections: []int{10, 1000, 10_000},
		waiters: 1000, handovers: 6, cycles: 200, crashes: 4, repeat: 3, writes: 1000, terms: 20_000,
		settle: time.Second, rest: 10 * time.Second, patience: 45 * time.Second,
		out: ".", source: "..",
	}
}

// quickOptions run every work once, with as little as shows that it works.
func quickOptions() options {
	o := defaultOptions()
	o.candidates, o.elections = []int{2}, []int{3}
	o.waiters, o.handovers, o.cycles, o.crashes, o.repeat, o.writes, o.terms = 4, 1, 2, 1, 1, 100, 200
	o.settle, o.rest, o.patience = 200*time.Millisecond, 500*time.Millisecond, 20*time.Second
	o.quick = true
	return o
}

// parse reads a command line.
func parse(args []string, stderr io.Writer) (options, error) {
	o := defaultOptions()
	if slices.ContainsFunc(args, func(arg string) bool { return arg == "-quick" || arg == "--quick" || arg == "-quick=true" }) {
		o = quickOptions()
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	list(flags, &o.stores, "store", "the `stores` to run on")
	list(flags, &o.works, "work", "the `works` to run")
	list(flags, &o.contenders, "contender", "the `contenders` to run, by the names in the tables (default: all)")
	numbers(flags, &o.candidates, "candidates", "how many candidates hand over to each other: a `list`")
	numbers(flags, &o.elections, "elections", "how many elections one process leads: a `list`")
	flags.IntVar(&o.waiters, "waiters", o.waiters, "how many candidates wait, or find leader and heir dead")
	flags.IntVar(&o.handovers, "handovers", o.handovers, "how many handovers in each run")
	flags.IntVar(&o.cycles, "cycles", o.cycles, "how many times each run acquires and releases")
	flags.IntVar(&o.crashes, "crashes", o.crashes, "how many crashes in each run")
	flags.IntVar(&o.repeat, "repeat", o.repeat, "how many runs of each work (those that take long are run once)")
	flags.IntVar(&o.writes, "writes", o.writes, "how many writes per second others make while watches are opened")
	flags.IntVar(&o.terms, "terms", o.terms, "how many terms are simulated")
	flags.DurationVar(&o.ttl, "ttl", o.ttl, "the TTL of all works (default: each its own)")
	flags.DurationVar(&o.settle, "settle", o.settle, "how long candidates have to settle before each handover")
	flags.DurationVar(&o.rest, "rest", o.rest, "how long processes are watched at rest")
	flags.DurationVar(&o.patience, "patience", o.patience, "how long a process may take to lead all its elections")
	flags.BoolVar(&o.quick, "quick", o.quick, "run every work once, with tiny numbers")
	flags.StringVar(&o.label, "label", o.label, "what to call these results")
	flags.StringVar(&o.out, "out", o.out, "the `folder` of RESULTS.md and results/")
	list(flags, &o.report, "report", "write RESULTS.md from these `files`, and run nothing")
	list(flags, &o.before, "before", "compare with what these `files` have of an earlier engine")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("bench: argument %q is not a flag: see -help", flags.Arg(0))
	}
	return o, o.check()
}

func (o options) check() error {
	err := errors.Join(
		oneOf("store", o.stores, storeNames),
		oneOf("work", o.works, workNames()),
		oneOf("contender", o.contenders, contenderNames()),
	)
	for name, n := range map[string]int{
		"waiters": o.waiters, "handovers": o.handovers, "cycles": o.cycles, "crashes": o.crashes, "repeat": o.repeat,
		"writes": o.writes, "terms": o.terms, "candidates": slices.Min(o.candidates), "elections": slices.Min(o.elections),
	} {
		if n < 1 {
			err = errors.Join(err, fmt.Errorf("bench: -%s=%d: at least 1", name, n))
		}
	}
	if slices.Min(o.candidates) == 1 {
		err = errors.Join(err, errors.New("bench: -candidates=1: a handover needs at least 2"))
	}
	if o.ttl != 0 && (o.ttl < leastTTL || o.ttl%time.Second != 0) {
		err = errors.Join(err, fmt.Errorf("bench: -ttl=%v: whole seconds, and at least %v, which is the least that etcd grants", o.ttl, leastTTL))
	}
	return err
}

func contenderNames() []string {
	var names []string
	for _, c := range contenders() {
		if !slices.Contains(names, c.Name) {
			names = append(names, c.Name)
		}
	}
	return names
}

func oneOf(flag string, given, known []string) error {
	for _, name := range given {
		if !slices.Contains(known, name) {
			return fmt.Errorf("bench: -%s=%s: there is none of that name: it is one of %s", flag, name, strings.Join(known, "; "))
		}
	}
	return nil
}

// list makes a flag of a list of names. Those of contenders have commas and blanks in
// them, so that a semicolon separates as well.
func list(flags *flag.FlagSet, to *[]string, name, usage string) {
	flags.Func(name, usage+" (default: "+strings.Join(*to, ",")+")", func(text string) error {
		separator := ","
		if strings.Contains(text, ";") || slices.Contains(contenderNames(), text) {
			separator = ";"
		}
		*to = strings.Split(text, separator)
		for i, part := range *to {
			(*to)[i] = strings.TrimSpace(part)
		}
		return nil
	})
}

func numbers(flags *flag.FlagSet, to *[]int, name, usage string) {
	flags.Func(name, fmt.Sprintf("%s (default: %v)", usage, *to), func(text string) error {
		*to = nil
		for part := range strings.SplitSeq(text, ",") {
			n, err := strconv.Atoi(strings.TrimSpace(part))
			if err != nil {
				return fmt.Errorf("%q is not a whole number", part)
			}
			*to = append(*to, n)
		}
		return nil
	})
}

// resultsFolder is where the files of all runs are.
func (o options) resultsFolder() string { return filepath.Join(o.out, "results") }
