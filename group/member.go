package group

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/electkv/election/internal/invitation"
)

// A Member is this process's part in groups. It is in a group, or on its way to one, from [New]
// until Close, whether Run and Watch are called or not: so it is one value that they share.
// All methods may be called by several goroutines at the same time.
type Member struct {
	self      string
	transport transport
	log       *slog.Logger
	began     time.Time
	timer     *time.Timer
	done      chan struct{} // closed by Close
	ticking   sync.WaitGroup

	mu      sync.Mutex
	node    invitation.Node
	peers   []string // in the form of wire.Members
	roster  roster
	group   invitation.Group // that it is in, zero if in none
	changed chan struct{}    // closed when that changes, and another one from then on
	running bool             // Run is under way
	work    *work            // that lead does now, nil if none
	closed  bool
}

// ErrClosed is the error of what cannot go on because the member was closed.
var ErrClosed = errors.New("group: the member was closed")

// New starts this process's part: it listens, connects with the other processes, and looks for
// groups. It does not wait for any of that.
//
// The member has goroutines and connections of its own until Close.
func New(opts *Options) (*Member, error) {
	o := Options{}
	if opts != nil {
		o = *opts
	}
	o = o.defaults()
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("group: %w", err)
	}
	self, peers, err := o.addresses()
	if err != nil {
		return nil, fmt.Errorf("group: %w", err)
	}
	incarnation := rand.Uint64()
	over, err := newNetwork(o, self, peers, incarnation)
	if err != nil {
		return nil, fmt.Errorf("group: %w", err)
	}
	return start(o, self, peers, incarnation, over)
}

// start begins to listen. The options are complete.
func start(opts Options, self string, peers []string, incarnation uint64, over transport) (*Member, error) {
	m := &Member{
		self: self, transport: over, log: opts.Logger,
		began: time.Now(), timer: time.NewTimer(0), done: make(chan struct{}),
		node:    invitation.New(invitation.Config{Self: invitation.ID(self), Timing: opts.timing()}),
		peers:   peers,
		changed: make(chan struct{}),
	}
	if err := over.Listen(m.deliver); err != nil {
		m.timer.Stop()
		return nil, errors.Join(fmt.Errorf("group: %w", err), over.Close())
	}
	m.take(invitation.Event{Kind: invitation.Start, Incarnation: incarnation, Peers: ids(peers)})
	m.ticking.Go(m.tick)
	return m, nil
}

// SetPeers changes the processes that may be in a group: see Options.Peers. This process is one of
// them, listed or not. A member of its group that is not listed any more is lost to it soon.
func (m *Member) SetPeers(addrs []string) error {
	peers, err := list(m.self, addrs)
	if err != nil {
		return fmt.Errorf("group: %w", err)
	}
	m.mu.Lock()
	m.roster = roster{}
	effects, err := m.know(peers)
	m.mu.Unlock()
	m.carryOut(effects)
	if err != nil {
		return fmt.Errorf("group: %w", err)
	}
	return nil
}

// know has the transport and the core know these peers, and no others any more. The mutex is held.
func (m *Member) know(peers []string) ([]invitation.Effect, error) {
	if slices.Equal(peers, m.peers) {
		return nil, nil
	}
	if err := m.transport.SetMembers(peers); err != nil {
		return nil, err
	}
	m.peers = peers
	return m.step(invitation.Event{Kind: invitation.Peers, Peers: ids(peers)}), nil
}

// Close leaves the group and tells its members, so that they need not miss this one first. It waits
// for everything that New has started. It does not wait for calls of Run and Watch that are
// under way: the context given to lead ends, and Run returns when lead has. To have the others wait for
// the work to stop, end the context of Run, and call Close when Run has returned.
func (m *Member) Close() error {
	m.mu.Lock()
	first := !m.closed
	m.closed = true
	m.mu.Unlock()
	if first {
		m.take(invitation.Event{Kind: invitation.Quit})
		close(m.done)
		m.transport.Flush()
	}
	err := m.transport.Close()
	m.ticking.Wait()
	return err
}

// deliver takes what another process has sent.
func (m *Member) deliver(from invitation.ID, msg invitation.Message) error {
	if err := invitation.Check(from, msg); err != nil {
		return err
	}
	m.take(invitation.Event{Kind: invitation.Arrived, From: from, Message: msg})
	return nil
}

// tick tells the core when its time has come.
func (m *Member) tick() {
	defer m.timer.Stop()
	for {
		select {
		case <-m.timer.C:
			m.take(invitation.Event{Kind: invitation.Tick})
		case <-m.done:
			return
		}
	}
}

// take has the core take in an event, and carries out what comes of it. What is sent or
// logged holds up nothing, as the mutex is free by then: messages may overtake each other.
func (m *Member) take(e invitation.Event) {
	m.mu.Lock()
	effects := m.step(e)
	m.mu.Unlock()
	m.carryOut(effects)
}

// step has the core take in an event, and enters and leaves groups. The mutex is held.
func (m *Member) step(first invitation.Event) (all []invitation.Effect) {
	now := time.Since(m.began)
	before := m.group.Number
	for events := []invitation.Event{first}; len(events) > 0; events = events[1:] {
		var effects []invitation.Effect
		m.node, effects = invitation.Step(m.node, now, events[0])
		for _, e := range effects {
			switch e.Kind {
			case invitation.Enter:
				m.group = e.Group
			case invitation.Leave:
				m.group = invitation.Group{}
				if m.work == nil {
					events = append(events, returned(e.Group.Number))
				} else {
					m.work.cancel(m.why())
				}
			}
		}
		all = append(all, effects...)
	}
	if m.group.Number != before {
		close(m.changed)
		m.changed = make(chan struct{})
		all = append(all, m.outgrow()...)
	}
	m.timer.Reset(m.node.Due() - now)
	return all
}

// why is why a group is over. The mutex is held.
func (m *Member) why() error {
	if m.closed {
		return ErrClosed
	}
	return errOver
}

// returned is the event that no work goes on for a group that was left.
func returned(n invitation.Number) invitation.Event {
	return invitation.Event{Kind: invitation.Returned, Number: n}
}

// carryOut sends and logs.
func (m *Member) carryOut(effects []invitation.Effect) {
	for _, e := range effects {
		switch e.Kind {
		case invitation.Send:
			m.transport.Send(e.To, e.Message)
		case invitation.Enter:
			g := public(e.Group)
			m.log.LogAttrs(context.Background(), slog.LevelInfo, "group entered", slog.String("event", "group_entered"), slog.String("group", string(g.Number)), slog.String("leader", g.Leader), slog.Any("members", g.Members))
		case invitation.Leave:
			m.log.LogAttrs(context.Background(), slog.LevelInfo, "group left", slog.String("event", "group_left"), slog.String("group", e.Group.Number.String()))
		}
	}
}
