package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/electkv/election/internal/testenv"
)

// lateBy is after how many TTLs a leader that is cut off is no longer waited for.
const lateBy = 6

func cutWork() work {
	return work{
		name:  "cut",
		title: "Leader cut off",
		about: "Two candidates, each a process. All packets of the leader's connections vanish from now on (a proxy drops them; " +
			"the process runs, its connections stay open). Overshoot: how long the old leader still believes that it leads when the next " +
			"one has been elected, in TTLs; negative if it gave up before. Above 0 there are two leaders.",
		metrics: []metric{
			{Name: "takeover", Unit: ttls, Title: "cut to next leader"},
			{Name: "overshoot", Unit: ttls, Title: "overshoot"},
		},
		ttl:      3 * time.Second,
		limit:    5 * time.Minute,
		together: true,
		settings: one(setting{Candidates: 2, Processes: 2}),
		suits:    onServers,
		run: func(ctx context.Context, t *trial) error {
			return repeatCut(ctx, t, func(l cutLeader) error { return l.blackHole(t) }, func(l cutLeader, lostAt, nextAt time.Duration) {
				t.record("takeover", (nextAt-l.cutAt).Seconds()/t.ttl.Seconds())
				t.record("overshoot", (lostAt-nextAt).Seconds()/t.ttl.Seconds())
			})
		},
	}
}

func stopWork() work {
	return work{
		name:  "stop",
		title: "Leader stopped and woken",
		about: "Two candidates, each a process. The leader's is stopped (SIGSTOP) until the next one has been elected, and for half a TTL " +
			"more; then it goes on (SIGCONT). How long it still believes that it leads once it runs again. No lease can prevent what it " +
			"does within that time: a fencing token can.",
		metrics:  []metric{{Name: "awake", Unit: seconds, Title: "still believes for", Ranked: true}},
		ttl:      3 * time.Second,
		limit:    5 * time.Minute,
		together: true,
		settings: one(setting{Candidates: 2, Processes: 2}),
		suits:    onServers,
		run: func(ctx context.Context, t *trial) error {
			return repeatCut(ctx, t, func(l cutLeader) error { return l.stopped(ctx, t) }, func(l cutLeader, lostAt, _ time.Duration) {
				t.record("awake", (lostAt - *l.wokenAt).Seconds())
			})
		},
	}
}

// A cutLeader is a leader that is about to be cut off.
type cutLeader struct {
	crew    *crew
	process *process
	proxy   *testenv.Proxy
	cutAt   time.Duration
	next    *heard
	wokenAt *time.Duration
}

// repeatCut makes a crew of two for each time, since nothing is known of what a leader
// that was cut off does when it comes back.
func repeatCut(ctx context.Context, t *trial, cut func(cutLeader) error, record func(l cutLeader, lostAt, nextAt time.Duration)) error {
	for range t.options.crashes {
		if err := cutOnce(ctx, t, cut, record); err != nil {
			return err
		}
	}
	return nil
}

func cutOnce(ctx context.Context, t *trial, cut func(cutLeader) error, record func(l cutLeader, lostAt, nextAt time.Duration)) error {
	var proxy *testenv.Proxy
	stage := &stage{}
	if err := stage.try(func() { proxy = testenv.NewProxy(stage, t.server.addr) }); err != nil {
		return err
	}
	crew := newCrew(stage, t.seat(1000))
	defer func() {
		crew.dismiss()
		_ = stage.close()
	}()
	first, err := crew.hire(ctx, proxy.Addr())
	if err != nil {
		return err
	}
	if err := crew.enter(first, 0, 1); err != nil {
		return err
	}
	if _, err := crew.await(ctx, isElected); err != nil {
		return err
	}
	second, err := crew.hire(ctx, "")
	if err != nil {
		return err
	}
	if err := crew.enter(second, 1, 2); err != nil {
		return err
	}
	if err := pause(ctx, t.options.settle+rand.N(t.ttl)); err != nil {
		return err
	}
	l := cutLeader{crew: crew, process: first, proxy: proxy, cutAt: now(), next: &heard{}, wokenAt: new(time.Duration)}
	if err := cut(l); err != nil {
		return err
	}
	lostAt, err := l.finish(ctx, t)
	if err == nil {
		record(l, lostAt, l.next.At)
	}
	return err
}

func (l cutLeader) blackHole(*trial) error { l.proxy.BlackHole(); return nil }

func (l cutLeader) stopped(ctx context.Context, t *trial) error {
	if err := l.process.stop(); err != nil {
		return err
	}
	next, err := l.crew.await(ctx, isElected)
	if err != nil {
		return err
	}
	*l.next = next
	if err := pause(ctx, t.ttl/2); err != nil {
		return err
	}
	*l.wokenAt = now()
	return l.process.proceed()
}

// finish waits until the next leader is elected and the old one takes its lead for
// lost. It waits for that no longer than lateBy: the figure is then a lower bound.
func (l cutLeader) finish(ctx context.Context, t *trial) (lostAt time.Duration, _ error) {
	for l.next.Kind == "" || lostAt == 0 {
		bounded, cancel := ctx, context.CancelFunc(func() {})
		if l.next.Kind != "" {
			bounded, cancel = context.WithTimeout(ctx, lateBy*t.ttl)
		}
		h, err := l.crew.await(bounded, func(h heard) bool {
			return h.Kind == elected || h.Kind == lost && h.from == l.process
		})
		cancel()
		switch {
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			t.note("still believed that it led %d TTLs later", lateBy)
			return now(), nil
		case err != nil:
			return 0, err
		case h.Kind == elected:
			*l.next = h
		default:
			lostAt = h.At
		}
	}
	return lostAt, nil
}
