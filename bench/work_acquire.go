package main

import (
	"context"
	"time"
)

func acquireWork() work {
	return work{
		name:  "acquire",
		title: "Acquire and release, nobody else",
		about: "One candidate acquires and releases, again and again. Connections, scripts and sessions that last are warm.",
		metrics: []metric{
			{Name: "both", Unit: seconds, Title: "acquire and release", Ranked: true},
			{Name: "acquire", Unit: seconds, Title: "of that, acquire"},
			{Name: "commits", Unit: number, Title: "Raft commits"},
		},
		ttl:      15 * time.Second,
		limit:    time.Minute,
		settings: one(setting{Candidates: 1, Processes: 1}),
		suits:    func(c contender, _ setting) bool { return c.Kind != bare },
		run:      runAcquire,
	}
}

func runAcquire(ctx context.Context, t *trial) error {
	crew := newCrew(t.stage, t.seat(1))
	defer crew.dismiss()
	p, err := crew.hire(ctx, "")
	if err != nil {
		return err
	}
	for _, n := range []int{3, t.options.cycles} { // the first ones warm up
		before, err := t.server.meter.read(ctx)
		if err != nil {
			return err
		}
		if err := p.order(order{Do: cycle, N: n}); err != nil {
			return err
		}
		h, err := crew.await(ctx, func(h heard) bool { return h.Kind == done })
		if err != nil {
			return err
		}
		if n == t.options.cycles {
			t.record("both", h.Series["both"]...)
			t.record("acquire", h.Series["acquire"]...)
			err = t.recordCommits(ctx, before, n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// recordCommits tells how many Raft commits each of n operations needed.
func (t *trial) recordCommits(ctx context.Context, before reading, n int) error {
	if t.contender.Store != inEtcd && t.contender.Store != inConsul {
		return nil
	}
	after, err := t.server.meter.read(ctx)
	if err == nil {
		t.record("commits", after.since(before).Proposals/float64(n))
	}
	return err
}
