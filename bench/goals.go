package main

import (
	"fmt"
	"math"
)

// A goal is what a result of this library is held against.
type goal struct {
	text      string
	work      string
	store     string
	contender string
	fits      func(setting) bool
	metric    string
	figure    func(summary) float64
	unit      unit
	bound     float64
	ratio     base // what the bound is a multiple of
}

// A base is what a figure is divided by before it is compared.
type base string

const (
	absolute base = ""
	byPeer   base = "× best peer"
	byTwo    base = "× the same with 2 candidates"
)

func median(s summary) float64 { return s.Median }
func p90(s summary) float64    { return s.P90 }
func p99(s summary) float64    { return s.P99 }
func most(s summary) float64   { return s.Max }

func candidates(n int) func(setting) bool {
	return func(s setting) bool { return s.Candidates == n && s.Processes != 1 }
}

func anySize(setting) bool { return true }

// goals are those that were set for the second engine.
func goals() []goal {
	var all []goal
	for _, g := range []struct {
		store           string
		heired, without float64
	}{{inEtcd, 0.5, 0.85}, {inConsul, 1, 1.2}, {inRedis, 0.5, 0.5}} {
		all = append(all,
			goal{"clean handover to an heir, 2 candidates", "handover", g.store, plainName, candidates(2), "handover", median, number, g.heired, byPeer},
			goal{"clean handover without an heir, 2 candidates", "handover", g.store, noHeirName, candidates(2), "handover", median, number, g.without, byPeer},
			goal{"clean handover to an heir, 100 candidates", "handover", g.store, plainName, candidates(100), "handover", median, number, 1.2, byTwo},
			goal{"clean handover to an heir, 1,000 candidates", "handover", g.store, plainName, candidates(1000), "handover", median, number, 1.2, byTwo})
	}
	for _, store := range []string{inEtcd, inRedis, inMemory} {
		all = append(all,
			goal{"claims when heir and leader die, p99", "vacancy", store, plainName, anySize, "claims", p99, number, 21, absolute},
			goal{"claims when heir and leader die, most", "vacancy", store, plainName, anySize, "claims", most, number, 30, absolute})
	}
	for _, contender := range []string{plainName, noHeirName} {
		all = append(all,
			goal{contender + ": a lone candidate leads", "lone", inMemory, contender, anySize, "first", median, seconds, 0.001, absolute},
			goal{contender + ": … also after an instant resign", "lone", inMemory, contender, anySize, "again", median, seconds, 0.001, absolute})
	}
	all = append(all, goal{"first change that a watch shows, 1,000 other writes, p90", "watch", inEtcd, plainName,
		func(s setting) bool { return s.Writes > 0 }, "acknowledged", p90, seconds, 0.002, absolute})
	tenThousand := func(s setting) bool { return s.Elections == 10_000 }
	for _, g := range []struct {
		store        string
		acquire, cpu float64
	}{{inEtcd, 1.15, 0.02}, {inConsul, 0.9, 0.05}, {inRedis, 1.25, 0.02}} {
		all = append(all,
			goal{"acquire and release", "acquire", g.store, plainName, anySize, "both", median, number, g.acquire, byPeer},
			goal{"10,000 elections led: memory each", "crowd", g.store, plainName, tenThousand, "memory", median, octets, 6 << 10, absolute},
			goal{"10,000 elections led: goroutines each", "crowd", g.store, plainName, tenThousand, "goroutines", median, number, 1, absolute},
			goal{"10,000 elections led: CPU at rest", "crowd", g.store, plainName, tenThousand, "cpu", median, share, g.cpu, absolute},
			goal{"10,000 elections led: requests", "crowd", g.store, plainName, tenThousand, "requests", median, rate, 30, absolute})
	}
	return all
}

// A verdict is a goal and what was measured.
type verdict struct {
	Text, Bound, Figure string
	Met                 bool
}

// judge holds the results against those goals that they have figures for.
func judge(r results) []verdict {
	var all []verdict
	for _, g := range goals() {
		if x := g.measured(r); !math.IsNaN(x) {
			bound := "≤ " + format(g.bound, g.unit)
			if g.ratio != absolute {
				bound += " " + string(g.ratio)
			}
			all = append(all, verdict{fmt.Sprintf("%s: %s", g.store, g.text), bound, format(x, g.unit), x <= g.bound})
		}
	}
	return all
}

// measured returns the worst figure of the goal's runs in the least favourable
// setting, or NaN if there is none. A ratio is one of medians.
func (g goal) measured(r results) float64 {
	worst := math.NaN()
	for _, run := range r.Runs {
		if run.Work != g.work || run.Store != g.store || run.Contender != g.contender || !g.fits(run.Setting) {
			continue
		}
		s, ok := run.Metrics[g.metric]
		if !ok {
			continue
		}
		x := g.figure(s)
		switch g.ratio {
		case byPeer:
			x = r.median(g.work, g.store, g.contender, run.Setting, g.metric) / r.bestPeer(g.work, g.store, run.Setting, g.metric)
		case byTwo:
			x = r.median(g.work, g.store, g.contender, run.Setting, g.metric) /
				r.median(g.work, g.store, g.contender, setting{Candidates: 2, Processes: 2}, g.metric)
		case absolute:
		}
		if !(x <= worst) {
			worst = x
		}
	}
	return worst
}
