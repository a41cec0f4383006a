package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/electkv/election/kv"
)

func watchWork() work {
	return work{
		name:  "watch",
		title: "The first change that a watch shows",
		about: "A watch of a name is opened; when it has told that there is nothing, the name is written. Meanwhile others write other names. " +
			"The time from when the write is sent, and from when it is acknowledged (0 if the watch is faster), until the watch tells.",
		metrics: []metric{
			{Name: "sent", Unit: seconds, Title: "since the send"},
			{Name: "acknowledged", Unit: seconds, Title: "since the acknowledgement"},
		},
		ttl:    15 * time.Second,
		limit:  2 * time.Minute,
		rounds: 2,
		settings: func(o options) []setting {
			return []setting{{Candidates: 1}, {Candidates: 1, Writes: o.writes}}
		},
		suits: func(c contender, _ setting) bool {
			return c.Store != inMemory && (c.Kind == limit || c.Name == plainName)
		},
		run: runWatch,
	}
}

// A sighting is what a watch showed, and when.
type sighting struct {
	err error
	at  time.Duration
}

func runWatch(ctx context.Context, t *trial) error {
	seat := t.seat(1)
	store, end, err := openStore(seat)
	if err != nil {
		return err
	}
	defer end()
	c, err := contenderNamed(seat.Store, "limit")
	if err != nil {
		return err
	}
	opened, err := c.open(seat)
	if err != nil {
		return err
	}
	defer opened.close()
	writer := opened.(batonFamily).baton // every limit is one
	load := newLoad(ctx, writer, seat.Election+"-other", t.setting.Writes)
	defer load.stop()
	for i := range t.options.cycles {
		name := fmt.Sprintf("%s-%d", seat.Election, i)
		watch := ourSightings(store, name)
		if t.contender.Kind == limit {
			watch = awaitOnce(writer, name)
		}
		if err := t.watchOnce(ctx, watch, func() error { return writer.put(ctx, name) }); err != nil {
			return err
		}
	}
	if t.setting.Writes > 0 {
		t.note("the others made %.0f writes per second", load.rate())
	}
	return nil
}

// watchOnce writes once the watch has shown that there is nothing.
func (t *trial) watchOnce(ctx context.Context, watch func(ctx context.Context, tell chan<- sighting), write func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen := make(chan sighting, 4)
	go watch(ctx, seen)
	if first := <-seen; first.err != nil {
		return first.err
	}
	sent := now()
	if err := write(); err != nil {
		return err
	}
	acknowledged := now()
	s := <-seen
	if s.err != nil {
		return s.err
	}
	t.record("sent", (s.at - sent).Seconds())
	t.record("acknowledged", max(s.at-acknowledged, 0).Seconds())
	return nil
}

// ourSightings are those of this library's store.
func ourSightings(store kv.Store, name string) func(context.Context, chan<- sighting) {
	return func(ctx context.Context, tell chan<- sighting) {
		was := -1
		for _, err := range store.Watch(ctx, name) {
			there := 1
			if errors.Is(err, kv.ErrVacant) {
				there, err = 0, nil
			}
			if there == was && err == nil {
				continue
			}
			was = there
			select {
			case tell <- sighting{err, now()}:
			case <-ctx.Done():
				return
			}
		}
	}
}

// awaitOnce is the bare watch of the store.
func awaitOnce(baton baton, name string) func(context.Context, chan<- sighting) {
	return func(ctx context.Context, tell chan<- sighting) {
		err := baton.await(ctx, name, func() { tell <- sighting{at: now()} })
		tell <- sighting{err, now()}
	}
}

// A load is others that write.
type load struct {
	cancel context.CancelFunc
	began  time.Duration
	writes atomic.Int64
}

func newLoad(ctx context.Context, writer baton, name string, perSecond int) *load {
	ctx, cancel := context.WithCancel(ctx)
	l := &load{cancel: cancel, began: now()}
	if perSecond == 0 {
		return l
	}
	const writers = 32
	for i := range writers {
		go func() {
			tick := time.NewTicker(time.Second * writers / time.Duration(perSecond))
			defer tick.Stop()
			for ctx.Err() == nil {
				if writer.put(ctx, name+strconv.Itoa(i)) == nil {
					l.writes.Add(1)
				}
				select {
				case <-tick.C:
				case <-ctx.Done():
				}
			}
		}()
	}
	return l
}

func (l *load) rate() float64 { return float64(l.writes.Load()) / (now() - l.began).Seconds() }

func (l *load) stop() { l.cancel() }
