//go:build unix

package main

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/electkv/election/cmd/elect/internal/stores"
)

// How often the log tells of a store that is waited for.
const (
	firstWord   = time.Second      // without an answer, until the log says that one is awaited
	otherTruth  = 10 * time.Second // at least, until it tells what has changed
	sameOldTale = time.Minute      // until it repeats what has not
)

// A patience waits for a store that cannot be used when elect starts.
type patience struct {
	address *stores.Address
	log     *slog.Logger
	began   time.Time
	most    time.Duration // negative: for as long as it takes

	told   string // what the log said last, and when
	toldAt time.Time
}

// patience returns how the flags wait for a store, from now on.
func (f *runFlags) patience(address *stores.Address, log *slog.Logger) *patience {
	p := &patience{address: address, log: log, began: time.Now(), most: -1}
	if f.given("wait") || f.tick.try { // one that tries waits for nothing
		p.most = f.wait
	}
	return p
}

// open opens the store, which some stores have to be asked for.
func (p *patience) open(ctx context.Context) (store *stores.Store, err error) {
	err = p.wait(ctx, stores.IsAway, func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		if store, err = p.address.Join(ctx, p.log); err != nil {
			return fmt.Errorf("store %w", err)
		}
		return nil
	})
	return store, err
}

// reach returns when the store answers.
func (p *patience) reach(ctx context.Context, store *stores.Store, name string) error {
	passes := func(err error) bool { return !stores.IsRefusal(err) }
	return p.wait(ctx, passes, func(within time.Duration) error { return probeWithin(ctx, within, store, name) })
}

// wait tries something until it succeeds, or its error is not one that may pass, or
// patience or ctx is over.
func (p *patience) wait(ctx context.Context, passes func(error) bool, try func(within time.Duration) error) error {
	silent := p.announce(ctx)
	err := try(p.within())
	silent()
	pause := leastPause
	for ; err != nil; pause = min(2*pause, mostPause) {
		if ctx.Err() != nil || !passes(err) || p.most == 0 {
			return err
		}
		left := p.left()
		if left <= 0 {
			return fmt.Errorf("%w; --wait %v is over", err, p.most)
		}
		p.tell(err)
		if !sleep(ctx, min(pause, left)) {
			return err
		}
		if err = try(p.within()); err == nil {
			p.log.Info("the store can be used", "store", p.address, "waited", time.Since(p.began).Round(time.Millisecond))
		}
	}
	return err
}

// left returns how much patience is left.
func (p *patience) left() time.Duration {
	if p.most < 0 {
		return math.MaxInt64
	}
	return p.most - time.Since(p.began)
}

// within returns how long one try may take: also the last one has a chance.
func (p *patience) within() time.Duration {
	if p.most == 0 {
		return probeTime
	}
	return min(probeTime, max(p.left(), leastPause))
}

// announce says what is waited for if the first answer takes long, unless the
// function that it returns is called before.
func (p *patience) announce(ctx context.Context) (silent func()) {
	if p.most == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if sleep(ctx, firstWord) {
			p.log.Info("waiting for the store to answer", "store", p.address)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// tell logs what is the matter: at once, then when it is another thing, or has gone
// on for long.
func (p *patience) tell(err error) {
	text, now := oneLine(err), time.Now()
	quiet := otherTruth
	if text == p.told {
		quiet = sameOldTale
	}
	if p.told != "" && now.Sub(p.toldAt) < quiet {
		return
	}
	p.told, p.toldAt = text, now
	p.log.Warn("waiting for the store", "error", err)
}
