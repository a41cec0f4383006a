package main

import (
	"context"
	"math/rand/v2"
	"time"
)

func crashWork() work {
	return work{
		name:  "crash",
		title: "Crash of the leader",
		about: "Three candidates, each a process. The leader's is killed (SIGKILL) at any point between two refreshes: the time " +
			"until the next one is elected. The least that a lease allows is the TTL less the age of the last refresh.",
		metrics:  []metric{{Name: "takeover", Unit: ttls, Title: "kill to next leader", Ranked: true}},
		ttl:      3 * time.Second,
		limit:    5 * time.Minute,
		together: true,
		settings: one(setting{Candidates: 3, Processes: 3}),
		suits:    onServers,
		run:      runCrash,
	}
}

func runCrash(ctx context.Context, t *trial) error {
	crew := newCrew(t.stage, t.seat(1000))
	defer crew.dismiss()
	leader, err := crew.spread(ctx, 3, 3)
	if err != nil {
		return err
	}
	for i := range t.options.crashes {
		if err := pause(ctx, t.options.settle+rand.N(t.ttl)); err != nil {
			return err
		}
		at := now()
		if err := leader.from.kill(); err != nil {
			return err
		}
		next, err := crew.await(ctx, isElected)
		if err != nil {
			return err
		}
		t.record("takeover", (next.At-at).Seconds()/t.ttl.Seconds())
		leader = next
		p, err := crew.hire(ctx, "") // in place of the one that died
		if err != nil {
			return err
		}
		if err := crew.enter(p, 3+i, 4+i); err != nil {
			return err
		}
	}
	return nil
}
