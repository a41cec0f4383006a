package main

import (
	"context"
	"errors"
	"time"
)

func restartWork() work {
	return work{
		name:  "restart",
		title: "A restart of the server under many terms",
		about: "One process leads many elections, each with one candidate. It is watched at rest, for half of the time that the options give. " +
			"Then the server is killed (SIGKILL) and started again: how long it was away, as far as a client can see; what part of the terms " +
			"ended; and from the kill on, until all lead again, or zero if no term ended. For the other half of the time it is watched what is " +
			"asked of the server that is back, and what the process takes.",
		metrics: []metric{
			{Name: "resting", Unit: rate, Title: "requests at rest"},
			{Name: "idle", Unit: share, Title: "CPU at rest"},
			{Name: "away", Unit: seconds, Title: "server away"},
			{Name: "ended", Unit: share, Title: "terms that ended"},
			{Name: "again", Unit: seconds, Title: "until all lead again"},
			{Name: "requests", Unit: rate, Title: "requests from then on"},
			{Name: "cpu", Unit: share, Title: "CPU from then on"},
			{Name: "leading", Unit: number, Title: "lead in the end"},
		},
		ttl:      15 * time.Second,
		limit:    20 * time.Minute,
		rounds:   1,
		settings: crowds,
		suits:    func(c contender, _ setting) bool { return c.Kind == ours && c.Store != inMemory },
		run:      runRestart,
	}
}

func runRestart(ctx context.Context, t *trial) error {
	seat := t.seat(t.setting.Elections)
	seat.Apart = true
	crew := newCrew(t.stage, seat)
	defer crew.dismiss()
	p, err := crew.hire(ctx, "")
	if err != nil {
		return err
	}
	if err := t.leadAll(ctx, crew, p); err != nil {
		return err
	}
	m := &restMeter{t: t, crew: crew, processes: []*process{p}}
	calm, err := m.rest(ctx, t.options.rest/2)
	if err != nil {
		return err
	}
	t.record("resting", calm.requests)
	t.record("idle", calm.cpu)
	killed := now()
	if err := t.stage.try(t.server.process.Restart); err != nil {
		return err
	}
	t.record("away", (now() - killed).Seconds())
	before, err := m.look(ctx)
	if err != nil {
		return err
	}
	ended, again, err := t.untilAllLead(ctx, crew, killed)
	if err != nil {
		return err
	}
	t.record("ended", float64(ended)/float64(t.setting.Elections))
	t.record("again", again.Seconds())
	after, err := m.look(ctx)
	if err != nil {
		return err
	}
	took := (after.at - before.at).Seconds()
	t.record("requests", after.server.since(before.server).Requests/took)
	t.record("cpu", (after.usage.cpu-before.usage.cpuAfter).Seconds()/took)
	t.record("leading", float64(after.usage.leading))
	return nil
}

// untilAllLead watches terms end and begin for half as long as the options say, and reports how many
// have ended, and how long after a moment all led again for the last time: zero if none has ended.
func (t *trial) untilAllLead(ctx context.Context, crew *crew, since time.Duration) (ended int, again time.Duration, err error) {
	watched, cancel := context.WithTimeout(ctx, t.options.rest/2)
	defer cancel()
	leading := t.setting.Elections
	for {
		h, err := crew.await(watched, func(h heard) bool { return h.Kind == elected || h.Kind == lost })
		switch {
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			if leading < t.setting.Elections {
				t.note("%s of %s led in the end", thousands(leading), thousands(t.setting.Elections))
			}
			return ended, again, nil
		case err != nil:
			return ended, again, err
		case h.Kind == lost:
			leading--
			ended++
		default:
			leading++
		}
		if leading == t.setting.Elections {
			again = h.At - since
		}
	}
}
