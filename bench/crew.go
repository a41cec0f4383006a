package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A crew is all candidates of one trial, in their processes.
type crew struct {
	stage     *stage
	seat      seat
	processes []*process
	where     map[int]*process // of each candidate

	mu    sync.Mutex
	queue []heard
	more  chan struct{} // has a value when the queue is longer than it was
}

// A heard is a notice, and the process that it is of.
type heard struct {
	notice
	from *process
}

func newCrew(st *stage, s seat) *crew {
	return &crew{stage: st, seat: s, where: make(map[int]*process), more: make(chan struct{}, 1)}
}

// hire starts a worker, at an address other than the seat's if one is given.
func (c *crew) hire(ctx context.Context, addr string) (*process, error) {
	s := c.seat
	if addr != "" {
		s.Addr = addr
	}
	p, err := startWorker(c.stage, s, c.hear)
	if err != nil {
		return nil, err
	}
	c.processes = append(c.processes, p)
	_, err = c.await(ctx, func(h heard) bool { return h.from == p && h.Kind == opened })
	return p, err
}

func (c *crew) hear(from *process, n notice) {
	c.mu.Lock()
	c.queue = append(c.queue, heard{n, from})
	c.mu.Unlock()
	select {
	case c.more <- struct{}{}:
	default:
	}
}

// await returns the first notice that is wanted, and drops those before it. It fails
// when a candidate has failed.
func (c *crew) await(ctx context.Context, wanted func(heard) bool) (heard, error) {
	for {
		c.mu.Lock()
		for i, h := range c.queue {
			if wanted(h) || h.Kind == failed {
				c.queue = c.queue[i+1:]
				c.mu.Unlock()
				if h.Kind == failed {
					return h, fmt.Errorf("candidate %d: %s", h.Candidate, h.Error)
				}
				return h, nil
			}
		}
		c.queue = nil
		c.mu.Unlock()
		select {
		case <-c.more:
		case <-ctx.Done():
			return heard{}, context.Cause(ctx)
		}
	}
}

// enter has candidates campaign in a process.
func (c *crew) enter(p *process, from, to int) error {
	for i := from; i < to; i++ {
		c.where[i] = p
	}
	return p.order(order{Do: enter, From: from, To: to})
}

// spread hires processes and lets n candidates enter, shared out among them. The
// first one enters before the others.
func (c *crew) spread(ctx context.Context, n, processes int) (leader heard, _ error) {
	for range processes {
		if _, err := c.hire(ctx, ""); err != nil {
			return heard{}, err
		}
	}
	if err := c.enter(c.processes[0], 0, 1); err != nil {
		return heard{}, err
	}
	leader, err := c.await(ctx, isElected)
	if err != nil {
		return leader, err
	}
	for i := range processes {
		from, to := max(i*n/processes, 1), (i+1)*n/processes
		if err := c.enter(c.processes[i], from, to); err != nil {
			return leader, err
		}
	}
	return leader, nil
}

func isElected(h heard) bool { return h.Kind == elected }

// measure tells what a process uses.
func (c *crew) measure(ctx context.Context, p *process) (usage, error) {
	if err := p.order(order{Do: measure}); err != nil {
		return usage{}, err
	}
	h, err := c.await(ctx, func(h heard) bool { return h.from == p && h.Usage != nil })
	if err != nil {
		return usage{}, err
	}
	return *h.Usage, nil
}

// dismiss ends all workers.
func (c *crew) dismiss() {
	var all sync.WaitGroup
	for _, p := range c.processes {
		all.Go(p.end)
	}
	all.Wait()
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
