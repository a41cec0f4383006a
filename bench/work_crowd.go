package main

import (
	"context"
	"errors"
	"time"
)

func crowdWork() work {
	return work{
		name:  "crowd",
		title: "Many elections in one process",
		about: "One process leads many elections, each with one candidate. How long until it leads all, then what it costs to " +
			"lead them at rest. Least margin left: the shortest time, over all terms and for half as long as the rest was watched, for which a term was still trusted; in TTLs.",
		metrics: []metric{
			{Name: "all", Unit: seconds, Title: "until all lead", Ranked: true},
			{Name: "memory", Unit: octets, Title: "memory each", Ranked: true},
			{Name: "goroutines", Unit: number, Title: "goroutines each"},
			{Name: "requests", Unit: rate, Title: "requests", Ranked: true},
			{Name: "cpu", Unit: share, Title: "CPU at rest", Ranked: true},
			{Name: "server", Unit: share, Title: "CPU of the server"},
			{Name: "margin", Unit: ttls, Title: "least margin left"},
			{Name: "leading", Unit: number, Title: "lead"},
		},
		ttl:      15 * time.Second,
		limit:    3 * time.Minute,
		rounds:   1,
		settings: crowds,
		suits:    func(c contender, _ setting) bool { return c.Kind != limit },
		run:      runCrowd,
	}
}

// crowds are as many elections in one process as the options say.
func crowds(o options) []setting {
	var all []setting
	for _, n := range o.elections {
		all = append(all, setting{Elections: n, Processes: 1})
	}
	return all
}

func runCrowd(ctx context.Context, t *trial) error {
	seat := t.seat(t.setting.Elections)
	seat.Apart = true
	crew := newCrew(t.stage, seat)
	defer crew.dismiss()
	p, err := crew.hire(ctx, "")
	if err != nil {
		return err
	}
	m := &restMeter{t: t, crew: crew, processes: []*process{p}}
	before, err := m.look(ctx)
	if err != nil {
		return err
	}
	if err := t.leadAll(ctx, crew, p); err != nil {
		return err
	}
	rest, err := m.rest(ctx, t.options.rest)
	if err != nil {
		return err
	}
	n := float64(t.setting.Elections)
	t.record("memory", max(rest.usage.heap-before.usage.heap, 0)/n)
	t.record("goroutines", float64(rest.usage.goroutines-before.usage.goroutines)/n)
	t.record("requests", rest.requests)
	t.record("cpu", rest.cpu)
	t.record("server", rest.server)
	t.record("leading", float64(rest.usage.leading))
	if err := p.order(order{Do: margins, For: min(t.ttl, t.options.rest) / 2}); err != nil {
		return err
	}
	h, err := crew.await(ctx, func(h heard) bool { return h.Kind == done && h.Usage == nil })
	for _, least := range h.Series["margin"] {
		t.record("margin", least/t.ttl.Seconds())
	}
	return err
}

// leadAll waits until all elections have a leader, or for the options' patience.
func (t *trial) leadAll(ctx context.Context, crew *crew, p *process) error {
	began, leading, gone := now(), 0, 0
	if err := crew.enter(p, 0, t.setting.Elections); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, t.options.patience)
	defer cancel()
	for leading < t.setting.Elections {
		h, err := crew.await(bounded, func(h heard) bool { return h.Kind == elected || h.Kind == lost })
		switch {
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			t.note("after %v %s of %s led, and %s had lost what they led", t.options.patience, thousands(leading), thousands(t.setting.Elections), thousands(gone))
			return nil
		case err != nil:
			return err
		case h.Kind == lost:
			leading--
			gone++
		default:
			leading++
		}
		if leading == t.setting.Elections {
			t.record("all", (h.At - began).Seconds())
		}
	}
	if t.options.quick {
		return pause(ctx, t.options.settle)
	}
	return pause(ctx, 2*t.ttl) // what the beginning of a term costs is over then
}
