package main

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// A work is one thing that contenders are compared in.
type work struct {
	name    string
	title   string
	about   string // what is done and how it is measured
	metrics []metric
	ttl     time.Duration // unless the options say otherwise
	limit   time.Duration // how long one trial may take
	rounds  int           // at most so many, 0 for as many as the options say
	// together has the contenders of a store run at the same time: they mostly wait.
	together bool
	settings func(options) []setting
	// suits reports whether a contender does this work in that setting.
	suits func(contender, setting) bool
	run   func(ctx context.Context, t *trial) error
}

// A metric is one figure of a work. It is recorded in its unit.
type metric struct {
	Name  string
	Unit  unit
	Title string
	// Ranked metrics are compared with those of the peers: less is better.
	Ranked bool
}

// A unit is that of the recorded figures.
type unit string

const (
	seconds unit = "s"
	octets  unit = "B"
	number  unit = ""
	rate    unit = "/s"
	share   unit = "%" // of a core, recorded as a fraction
	ttls    unit = "TTL"
	flow    unit = "B/s"
)

// A setting is how large a work is.
type setting struct {
	Candidates int `json:",omitempty"`
	Processes  int `json:",omitempty"`
	Elections  int `json:",omitempty"`
	Writes     int `json:",omitempty"` // of others, a second
}

func (s setting) String() string {
	var parts []string
	say := func(n int, one, many string) {
		switch {
		case n == 1:
			parts = append(parts, "1 "+one)
		case n > 1:
			parts = append(parts, thousands(n)+" "+many)
		}
	}
	say(s.Candidates, "candidate", "candidates")
	say(s.Elections, "election", "elections")
	say(s.Writes, "other write per second", "other writes per second")
	say(s.Processes, "process", "processes")
	return strings.Join(parts, ", ")
}

func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// A trial is one contender at one work in one setting, once.
type trial struct {
	options   options
	work      *work
	contender contender
	setting   setting
	ttl       time.Duration
	stage     *stage
	server    *server
	series    map[string][]float64
	notes     []string
}

func (t *trial) record(metric string, values ...float64) {
	t.series[metric] = append(t.series[metric], values...)
}

func (t *trial) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

var trials atomic.Int64 //nolint:gochecknoglobals // names are not used twice

// seat returns where the candidates of this trial stand: in an election that no other
// trial has.
func (t *trial) seat(of int) seat {
	return seat{
		Store: t.contender.Store, Contender: t.contender.Name, Addr: t.server.addr, TTL: t.ttl,
		Election: fmt.Sprintf("bench-%s-%d", t.work.name, trials.Add(1)), Of: of,
	}
}

// works returns all there are, in the order of the report.
func works() []work {
	return []work{
		acquireWork(), handoverWork(), loneWork(), crashWork(), cutWork(), stopWork(), vacancyWork(),
		waitersWork(), crowdWork(), restartWork(), refreshWork(), watchWork(), simulationWork(),
	}
}

func workNames() []string {
	var names []string
	for _, w := range works() {
		names = append(names, w.name)
	}
	return names
}

// contestants are all but the limit and the harness.
func contestants(c contender, _ setting) bool { return c.Kind == ours || c.Kind == peer }

func onServers(c contender, s setting) bool { return contestants(c, s) && c.Store != inMemory }

func one(s setting) func(options) []setting {
	return func(options) []setting { return []setting{s} }
}
