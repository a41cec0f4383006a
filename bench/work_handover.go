package main

import (
	"context"
	"time"
)

func handoverWork() work {
	return work{
		name:  "handover",
		title: "Clean handover",
		about: "The leader releases, and another candidate is elected: the time from when the release begins until the " +
			"other is told. The leader of before then stands again. Candidates settle first, and between two handovers; " +
			"the first two handovers are not counted.",
		metrics: []metric{
			{Name: "handover", Unit: seconds, Title: "handover", Ranked: true},
			{Name: "commits", Unit: number, Title: "Raft commits, with the return of the old leader"},
		},
		ttl:   15 * time.Second,
		limit: 3 * time.Minute,
		settings: func(o options) []setting {
			var all []setting
			for _, n := range o.candidates {
				all = append(all, setting{Candidates: n, Processes: 1}, setting{Candidates: n, Processes: min(n, 10)})
			}
			return all
		},
		suits: func(c contender, s setting) bool {
			switch {
			case c.Kind == bare, c.Store == inMemory && s.Processes > 1:
				return false
			case c.Kind == limit:
				return s.Candidates == 2 // it wakes one, however many there are
			}
			return true
		},
		run: runHandover,
	}
}

// perCandidate is how long each candidate adds to the time that all have to settle.
const perCandidate = 5 * time.Millisecond

func runHandover(ctx context.Context, t *trial) error {
	crew := newCrew(t.stage, t.seat(t.setting.Candidates))
	defer crew.dismiss()
	leader, err := crew.spread(ctx, t.setting.Candidates, t.setting.Processes)
	if err != nil {
		return err
	}
	if err := pause(ctx, t.options.settle+perCandidate*time.Duration(t.setting.Candidates)); err != nil {
		return err
	}
	var before reading
	for i := range t.options.handovers + 2 {
		if i == 2 {
			if before, err = t.server.meter.read(ctx); err != nil {
				return err
			}
		}
		if err := pause(ctx, t.options.settle+perCandidate/5*time.Duration(t.setting.Candidates)); err != nil {
			return err
		}
		next, took, err := crew.handOver(ctx, leader)
		if err != nil {
			return err
		}
		if i >= 2 {
			t.record("handover", took.Seconds())
		}
		leader = next
	}
	if err := pause(ctx, t.options.settle); err != nil {
		return err
	}
	return t.recordCommits(ctx, before, t.options.handovers)
}

// handOver has the leader release, and stand again when another is elected.
func (c *crew) handOver(ctx context.Context, leader heard) (next heard, took time.Duration, err error) {
	if err := leader.from.order(order{Do: release, Candidate: leader.Candidate}); err != nil {
		return next, 0, err
	}
	var gone heard
	for gone.Kind == "" || next.Kind == "" {
		h, err := c.await(ctx, func(h heard) bool {
			return h.Kind == elected || h.Kind == released && h.Candidate == leader.Candidate
		})
		switch {
		case err != nil:
			return next, 0, err
		case h.Kind == elected:
			next = h
		default:
			gone = h
		}
	}
	return next, next.At - gone.At, c.enter(leader.from, leader.Candidate, leader.Candidate+1)
}
