package main

import (
	"context"
	"time"
)

func loneWork() work {
	return work{
		name:  "lone",
		title: "A lone candidate in memory",
		about: "One candidate, the memory store, an election that is new each time: how long until it leads; and how long " +
			"until it leads again when it resigned at once.",
		metrics: []metric{
			{Name: "first", Unit: seconds, Title: "first"},
			{Name: "again", Unit: seconds, Title: "after an instant resign"},
		},
		ttl:      time.Second,
		limit:    2 * time.Minute,
		settings: one(setting{Candidates: 1, Processes: 1}),
		suits:    func(c contender, _ setting) bool { return c.Store == inMemory && c.Kind == ours },
		run:      runLone,
	}
}

func runLone(ctx context.Context, t *trial) error {
	seat := t.seat(1)
	seat.Apart = true
	crew := newCrew(t.stage, seat)
	defer crew.dismiss()
	p, err := crew.hire(ctx, "")
	if err != nil {
		return err
	}
	for i := range t.options.handovers {
		if err := p.order(order{Do: cycle, Candidate: i, N: 2}); err != nil {
			return err
		}
		h, err := crew.await(ctx, func(h heard) bool { return h.Kind == done })
		if err != nil {
			return err
		}
		t.record("first", h.Series["acquire"][0])
		t.record("again", h.Series["acquire"][1])
	}
	return nil
}
