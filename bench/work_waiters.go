package main

import (
	"context"
	"time"
)

func waitersWork() work {
	return work{
		name:  "waiters",
		title: "Candidates that wait",
		about: "One leader in a process of its own, and candidates that only wait in one or ten others. Requests, server CPU and bytes are the " +
			"leader's and the waiting ones' together; CPU, memory and goroutines are of the waiting ones' processes. Memory is heap and " +
			"stacks in use after a collection, with one blocked goroutine of the user's each: see the row of the harness alone.",
		metrics: []metric{
			{Name: "requests", Unit: rate, Title: "requests", Ranked: true},
			{Name: "connections", Unit: number, Title: "connections"},
			{Name: "bytes", Unit: flow, Title: "bytes"},
			{Name: "cpu", Unit: share, Title: "CPU of the candidates"},
			{Name: "server", Unit: share, Title: "CPU of the server"},
			{Name: "memory", Unit: octets, Title: "memory each", Ranked: true},
			{Name: "goroutines", Unit: number, Title: "goroutines each"},
		},
		ttl:    15 * time.Second,
		limit:  3 * time.Minute,
		rounds: 1,
		settings: func(o options) []setting {
			return []setting{{Candidates: o.waiters, Processes: 1}, {Candidates: o.waiters, Processes: min(o.waiters, 10)}}
		},
		suits: func(c contender, s setting) bool { return c.Kind != limit && (c.Store != inMemory || s.Processes == 1) },
		run:   runWaiters,
	}
}

func runWaiters(ctx context.Context, t *trial) error {
	seat := t.seat(t.setting.Candidates + 1)
	relay, err := newRelay(seat.Addr)
	if err != nil {
		return err
	}
	defer func() { _ = relay.close() }()
	crew := newCrew(t.stage, seat)
	defer crew.dismiss()
	if err := crew.lead(ctx, relay.addr()); err != nil {
		return err
	}
	var waiting []*process
	for range t.setting.Processes {
		p, err := crew.hire(ctx, relay.addr())
		if err != nil {
			return err
		}
		waiting = append(waiting, p)
	}
	if t.contender.Store == inMemory { // which is a process's own
		if err := crew.enter(waiting[0], 0, 1); err != nil {
			return err
		}
		if _, err := crew.await(ctx, isElected); err != nil {
			return err
		}
	}
	m := &restMeter{t: t, crew: crew, relay: relay, processes: waiting}
	before, err := m.look(ctx)
	if err != nil {
		return err
	}
	n := t.setting.Candidates
	for i, p := range waiting {
		if err := crew.enter(p, 1+i*n/len(waiting), 1+(i+1)*n/len(waiting)); err != nil {
			return err
		}
	}
	if err := pause(ctx, t.options.settle+perCandidate*time.Duration(n)); err != nil {
		return err
	}
	rest, err := m.rest(ctx, t.options.rest)
	if err != nil {
		return err
	}
	t.record("requests", rest.requests)
	t.record("connections", float64(relay.open.Load()))
	t.record("bytes", rest.bytes)
	t.record("cpu", rest.cpu)
	t.record("server", rest.server)
	t.record("memory", max(rest.usage.heap-before.usage.heap, 0)/float64(n))
	t.record("goroutines", float64(rest.usage.goroutines-before.usage.goroutines)/float64(n))
	return nil
}

// lead has candidate 0 lead, in a process of its own, if a store can be shared.
func (c *crew) lead(ctx context.Context, addr string) error {
	if c.seat.Store == inMemory {
		return nil
	}
	p, err := c.hire(ctx, addr)
	if err != nil {
		return err
	}
	if err := c.enter(p, 0, 1); err != nil {
		return err
	}
	_, err = c.await(ctx, isElected)
	return err
}
