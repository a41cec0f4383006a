package main

import (
	"context"
	"time"
)

// A restMeter measures what processes and their server do at rest.
type restMeter struct {
	t         *trial
	crew      *crew
	relay     *relay // nil if bytes are not counted
	processes []*process
}

// A snapshot is how things stand at an instant.
type snapshot struct {
	at     time.Duration
	server reading
	bytes  int64
	usage  total
}

// A total is what all the processes use.
type total struct {
	cpu, cpuAfter time.Duration
	heap          float64
	goroutines    int
	leading       int
}

// A rest is what happened in a stretch of time, a second.
type rest struct {
	requests, proposals, bytes float64
	cpu, server                float64 // of a core
	usage                      total   // at its end
}

func (m *restMeter) look(ctx context.Context) (snapshot, error) {
	var s snapshot
	for _, p := range m.processes {
		u, err := m.crew.measure(ctx, p)
		if err != nil {
			return s, err
		}
		s.usage.cpu += u.CPU
		s.usage.cpuAfter += u.CPUAfter
		s.usage.heap += float64(u.Heap)
		s.usage.goroutines += u.Goroutines
		s.usage.leading += u.Leading
	}
	return s, m.count(ctx, &s)
}

// count reads what is counted elsewhere than in the processes.
func (m *restMeter) count(ctx context.Context, s *snapshot) error {
	var err error
	s.server, err = m.t.server.meter.read(ctx)
	if m.relay != nil {
		s.bytes = m.relay.bytes.Load()
	}
	s.at = now()
	return err
}

// rest watches for a while. What it costs to look is not counted.
func (m *restMeter) rest(ctx context.Context, d time.Duration) (rest, error) {
	before, err := m.look(ctx)
	if err != nil {
		return rest{}, err
	}
	if err := pause(ctx, d); err != nil {
		return rest{}, err
	}
	var after snapshot
	if err := m.count(ctx, &after); err != nil {
		return rest{}, err
	}
	end, err := m.look(ctx)
	if err != nil {
		return rest{}, err
	}
	took := (after.at - before.at).Seconds()
	counted := after.server.since(before.server)
	return rest{
		requests:  counted.Requests / took,
		proposals: counted.Proposals / took,
		bytes:     float64(after.bytes-before.bytes) / took,
		cpu:       (end.usage.cpu - before.usage.cpuAfter).Seconds() / took,
		server:    counted.CPU / took,
		usage:     end.usage,
	}, nil
}
