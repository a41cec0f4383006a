package main

import (
	"context"
	"time"
)

func refreshWork() work {
	return work{
		name:  "refresh",
		title: "What a refresh costs the store",
		about: "Leaders at rest, all in one process: what each costs in one TTL, however often it refreshes in that time.",
		metrics: []metric{
			{Name: "requests", Unit: number, Title: "requests per TTL", Ranked: true},
			{Name: "proposals", Unit: number, Title: "Raft proposals per TTL"},
			{Name: "bytes", Unit: octets, Title: "bytes per TTL", Ranked: true},
		},
		ttl:      4 * time.Second,
		limit:    2 * time.Minute,
		rounds:   1,
		settings: refreshSettings,
		suits:    onServers,
		run:      runRefresh,
	}
}

func refreshSettings(o options) []setting {
	if o.quick {
		return []setting{{Elections: 3, Processes: 1}}
	}
	return []setting{{Elections: 1, Processes: 1}, {Elections: 100, Processes: 1}}
}

func runRefresh(ctx context.Context, t *trial) error {
	seat := t.seat(t.setting.Elections)
	seat.Apart = true
	relay, err := newRelay(seat.Addr)
	if err != nil {
		return err
	}
	defer func() { _ = relay.close() }()
	crew := newCrew(t.stage, seat)
	defer crew.dismiss()
	p, err := crew.hire(ctx, relay.addr())
	if err != nil {
		return err
	}
	if err := t.leadAll(ctx, crew, p); err != nil {
		return err
	}
	m := &restMeter{t: t, crew: crew, relay: relay, processes: []*process{p}}
	watched := 2 * t.ttl
	if t.options.quick {
		watched = t.ttl
	}
	rest, err := m.rest(ctx, watched)
	if err != nil {
		return err
	}
	each := t.ttl.Seconds() / float64(t.setting.Elections)
	t.record("requests", rest.requests*each)
	t.record("bytes", rest.bytes*each)
	if t.contender.Store != inRedis {
		t.record("proposals", rest.proposals*each)
	}
	return nil
}
