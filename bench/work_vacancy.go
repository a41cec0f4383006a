package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/kv"
)

func vacancyWork() work {
	return work{
		name:  "vacancy",
		title: "Leader and heir die at once",
		about: "All candidates are in one process and share a client. Those that lead and are next in line are cut off from the store at once. Claims: " +
			"requests to create or replace a record that the others send until one of them leads, in all safes of the election.",
		metrics: []metric{
			{Name: "claims", Unit: number, Title: "claims"},
			{Name: "takeover", Unit: ttls, Title: "until the next leads"},
		},
		ttl:    15 * time.Second,
		limit:  5 * time.Minute,
		rounds: 2,
		settings: func(o options) []setting {
			return []setting{{Candidates: o.waiters, Processes: 1}}
		},
		suits: func(c contender, _ setting) bool { return c.Kind == ours && c.Store != inConsul },
		run:   runVacancy,
	}
}

// A mortal is the store as one candidate sees it. It counts claims while the candidate
// lives, and fails when it is dead.
type mortal struct {
	kv.Board
	dead   atomic.Bool
	claims *atomic.Int64
}

var errDead = errors.New("bench: this candidate is dead")

func (m *mortal) alive() error {
	if m.dead.Load() {
		return errDead
	}
	return nil
}

func (m *mortal) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	if err := m.alive(); err != nil {
		return kv.Record{}, err
	}
	m.claims.Add(1)
	return m.Board.Create(ctx, name, rec)
}

func (m *mortal) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	if err := m.alive(); err != nil {
		return kv.Record{}, err
	}
	if old.Signature != next.Signature {
		m.claims.Add(1)
	}
	return m.Board.Swap(ctx, name, old, next)
}

func (m *mortal) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	if err := m.alive(); err != nil {
		return kv.Record{}, err
	}
	return m.Board.Refresh(ctx, name, rec)
}

func (m *mortal) Delete(ctx context.Context, name string, rec kv.Record) error {
	if err := m.alive(); err != nil {
		return err
	}
	return m.Board.Delete(ctx, name, rec)
}

func (m *mortal) Get(ctx context.Context, name string) (kv.Record, error) {
	if err := m.alive(); err != nil {
		return kv.Record{}, err
	}
	return m.Board.Get(ctx, name)
}

func (m *mortal) Follow(name string, tell func(kv.Record, error)) (stop func()) {
	return m.Board.Follow(name, func(rec kv.Record, err error) {
		if m.alive() == nil {
			tell(rec, err)
		}
	})
}

// A crowd is candidates that can die.
type crowd struct {
	store  kv.Board
	opts   election.Options
	name   string
	claims atomic.Int64
	led    chan *member
	ended  sync.WaitGroup

	mu   sync.Mutex
	heir *member
}

type member struct {
	store *mortal
	die   context.CancelFunc
}

// join has one more candidate campaign, until it dies.
func (c *crowd) join(ctx context.Context) error {
	m := &member{store: &mortal{Board: c.store, claims: &c.claims}}
	ctx, m.die = context.WithCancel(ctx)
	opts := c.opts
	opts.OnRole = func(role election.Role) {
		if role == election.RoleHeir {
			c.mu.Lock()
			c.heir = m
			c.mu.Unlock()
		}
	}
	candidate, err := election.New(m.store, c.name, &opts)
	if err != nil {
		return err
	}
	c.ended.Go(func() {
		term, err := candidate.Campaign(ctx)
		if err != nil {
			return // it has died
		}
		c.led <- m
		<-ctx.Done()
		_ = term.Resign(context.WithoutCancel(ctx)) // in vain: it is dead
	})
	return nil
}

func (m *member) kill() {
	m.store.dead.Store(true)
	m.die()
}

func runVacancy(ctx context.Context, t *trial) error {
	seat := t.seat(t.setting.Candidates)
	store, end, err := openStore(seat)
	if err != nil {
		return err
	}
	defer end()
	shown, ok := store.(kv.Board)
	if !ok {
		return fmt.Errorf("bench: the store %q is no board", seat.Store)
	}
	c := &crowd{store: shown, name: seat.Election, led: make(chan *member, 16), opts: election.Options{TTL: t.ttl, NoHeir: t.contender.Name == noHeirName}}
	ctx, stop := context.WithCancel(ctx)
	defer c.ended.Wait()
	defer stop()
	if err := c.join(ctx); err != nil {
		return err
	}
	leader, err := c.next(ctx)
	if err != nil {
		return err
	}
	for range t.setting.Candidates - 1 {
		if err := c.join(ctx); err != nil {
			return err
		}
	}
	for range t.options.crashes {
		if err := pause(ctx, t.options.settle+perCandidate*time.Duration(t.setting.Candidates)); err != nil {
			return err
		}
		if leader, err = c.vacate(ctx, t, leader); err != nil {
			return err
		}
	}
	return nil
}

func (c *crowd) next(ctx context.Context) (*member, error) {
	select {
	case m := <-c.led:
		return m, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// vacate kills leader and heir, and waits for the next leader.
func (c *crowd) vacate(ctx context.Context, t *trial, leader *member) (*member, error) {
	c.mu.Lock()
	dead := []*member{leader}
	if c.heir != nil && c.heir != leader {
		dead = append(dead, c.heir)
	}
	c.heir = nil
	c.mu.Unlock()
	for _, m := range dead {
		m.store.dead.Store(true)
	}
	began := now()
	c.claims.Store(0)
	for _, m := range dead {
		m.kill()
	}
	next, err := c.next(ctx)
	if err != nil {
		return nil, err
	}
	t.record("claims", float64(c.claims.Load()))
	t.record("takeover", (now()-began).Seconds()/t.ttl.Seconds())
	for range dead {
		if err := c.join(ctx); err != nil {
			return nil, err
		}
	}
	return next, nil
}
