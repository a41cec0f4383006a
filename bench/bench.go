package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// large reports whether a trial takes long. It is run once, and has a server of its
// own: what it leaves behind, leases that run out, say, would be felt by the next one.
func (s setting) large() bool { return max(s.Candidates, s.Elections) >= 100 }

// A bench runs works and collects their results.
type bench struct {
	options options
	log     io.Writer

	mu      sync.Mutex
	results results
}

// runAll runs every work that the options ask for.
func runAll(ctx context.Context, o options, command string, log io.Writer) (results, error) {
	b := &bench{options: o, log: log}
	began := time.Now()
	m, err := thisMachine()
	if err != nil {
		return results{}, err
	}
	b.results = results{
		Label: o.label, Date: began, Command: command, Machine: m, Load: []string{loadAverage()},
		Servers: make(map[string]string), Peers: peerVersions(),
	}
	b.results.Commit, b.results.Changed = commitOf(ctx, o.source)
	for _, w := range works() {
		if err == nil && slices.Contains(o.works, w.name) {
			err = b.rounds(ctx, &w)
		}
	}
	b.results.Load = append(b.results.Load, loadAverage())
	b.results.Took = time.Since(began).Round(time.Second).String()
	return b.results, err
}

// rounds runs a work as often as it is to be. In each round every contender has its
// turn, in an order that is drawn.
func (b *bench) rounds(ctx context.Context, w *work) error {
	rounds := b.options.repeat
	if w.rounds > 0 {
		rounds = min(rounds, w.rounds)
	}
	for round := range rounds {
		for _, s := range w.settings(b.options) {
			if round > 0 && s.large() {
				continue
			}
			for _, store := range b.options.stores {
				if err := b.contest(ctx, w, s, store, round); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// contest runs all contenders on a store once.
func (b *bench) contest(ctx context.Context, w *work, s setting, store string, round int) error {
	var all []contender
	for _, c := range contenders() {
		wanted := len(b.options.contenders) == 0 || slices.Contains(b.options.contenders, c.Name)
		if c.Store == store && wanted && w.suits(c, s) {
			all = append(all, c)
		}
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	shared := [][]contender{all}
	if s.large() {
		shared = slices.Collect(slices.Chunk(all, 1))
	}
	for _, contenders := range shared {
		if len(contenders) > 0 {
			if err := b.onOneServer(ctx, w, s, contenders, round); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) onOneServer(ctx context.Context, w *work, s setting, contenders []contender, round int) error {
	stage := &stage{}
	server, err := startServer(stage, contenders[0].Store)
	if err != nil {
		_ = stage.close()
		return err
	}
	var running sync.WaitGroup
	for _, c := range contenders {
		t := &trial{
			options: b.options, work: w, contender: c, setting: s, ttl: b.ttlOf(w), stage: stage, server: server,
			series: make(map[string][]float64),
		}
		running.Go(func() { b.try(ctx, t, round) })
		if !w.together {
			running.Wait()
			if err := pause(ctx, b.options.settle/2); err != nil {
				break
			}
		}
	}
	running.Wait()
	if err := b.version(ctx, contenders[0].Store, server); err != nil {
		return err
	}
	if err := stage.close(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

func (b *bench) ttlOf(w *work) time.Duration {
	if b.options.ttl > 0 {
		return b.options.ttl
	}
	return w.ttl
}

func (b *bench) version(ctx context.Context, store string, server *server) error {
	if store == inMemory || b.results.Servers[store] != "" {
		return nil
	}
	version, err := server.meter.version(ctx)
	b.results.Servers[store] = version
	return err
}

// try runs one trial and notes what became of it.
func (b *bench) try(ctx context.Context, t *trial, round int) {
	runtime.GC() // not in the trial
	began := time.Now()
	bounded, cancel := context.WithTimeout(ctx, t.work.limit)
	defer cancel()
	err := t.work.run(bounded, t)
	r := run{
		Work: t.work.name, Store: t.contender.Store, Contender: t.contender.Name, Setting: t.setting, TTL: t.ttl.String(), Round: round,
		Metrics: make(map[string]summary), Notes: t.notes,
	}
	if err != nil {
		r.Error = err.Error()
	}
	var said []string
	for _, m := range t.work.metrics {
		if series := t.series[m.Name]; len(series) > 0 {
			r.Metrics[m.Name] = summarize(series)
			said = append(said, m.Title+" "+format(r.Metrics[m.Name].Median, m.Unit))
		}
	}
	if ctx.Err() != nil {
		return // the bench was stopped, not the trial
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.results.Runs = append(b.results.Runs, r)
	fmt.Fprintf(b.log, "%s %d %s, %s: %s: %s %s (%s)\n", r.Work, round+1, r.Store, r.Setting, r.Contender, strings.Join(said, "; "), r.Error,
		time.Since(began).Round(100*time.Millisecond))
}
