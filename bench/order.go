package main

import "time"

// A seat is what a worker is told first: which contender its candidates are of, and
// where they stand.
type seat struct {
	Store     string
	Contender string
	Addr      string
	TTL       time.Duration
	Election  string
	Of        int  // how many candidates the election has in all processes
	Apart     bool // each candidate has an election of its own
}

// An order is what the bench tells a worker to do.
type order struct {
	Do        verb
	From, To  int           // the candidates that enter: from From, and before To
	Candidate int           // the one that releases, or that does cycles
	N         int           // how many cycles
	For       time.Duration // how long to look at margins
}

// A verb is what there is to do.
type verb string

const (
	enter   verb = "enter"   // candidates campaign, each once
	release verb = "release" // a candidate releases what it holds
	cycle   verb = "cycle"   // a candidate acquires and releases, again and again
	measure verb = "measure" // tell what the process uses
	margins verb = "margins" // tell the least margin left of all that lead
)

// A notice is what a worker tells.
type notice struct {
	Kind      news
	Candidate int
	At        time.Duration        // by the clock of boot time, which all processes share
	Series    map[string][]float64 `json:",omitempty"`
	Usage     *usage               `json:",omitempty"`
	Error     string               `json:",omitempty"`
}

// A news is what a notice is of.
type news string

const (
	opened   news = "opened"   // the worker can be told what to do
	elected  news = "elected"  // a candidate leads
	released news = "released" // a candidate has released; At is when it began to
	lost     news = "lost"     // a candidate takes what it held for lost
	failed   news = "failed"   // a candidate could not do what it was told
	done     news = "done"     // an order is carried out
)

// A usage is what a process uses. Memory is what is in use after a collection.
type usage struct {
	CPU        time.Duration // user and system, before the collection
	CPUAfter   time.Duration // and after it
	Heap       uint64        // bytes, stacks included
	Goroutines int
	Leading    int // candidates that lead, as far as they know
}
