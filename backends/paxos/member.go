package paxoskv

import (
	"context"
	"sync"
	"time"

	"github.com/electkv/election/backends/paxos/internal/lease"
)

// deliver takes what another member, or this one, has sent.
func (s *Store) deliver(from lease.MemberID, m lease.Message) {
	switch m := m.(type) {
	case lease.Answer:
		s.pass(m.Asker, from, m)
	case lease.Promise:
		s.pass(m.Ballot, from, m)
	case lease.Accept:
		s.pass(m.Ballot, from, m)
	case lease.Refusal:
		s.pass(m.Ballot, from, m)
	case lease.Commit:
		s.scenes.show(m.Safe, lease.Sight{Ballot: m.Ballot, State: m.State, Live: !m.State.Vacant(), Life: m.Life})
	default:
		if answer := s.grant(m); answer != nil {
			s.transport.Send(from, answer)
		}
	}
}

// grant has the acceptor answer. What an answer promises is on disk before it
// leaves.
func (s *Store) grant(m lease.Message) lease.Message {
	if s.acceptor == nil {
		return nil
	}
	s.granting.Lock()
	defer s.granting.Unlock()
	_, slow := s.clock.now()
	if slow >= s.forgets {
		s.acceptor.Forget(slow)
		s.forgets = slow + s.terms.Quarantine()
	}
	answer := s.acceptor.Receive(slow, m)
	if counter := lease.Promised(answer); counter > 0 && s.promises != nil {
		if err := s.promises.keep(counter); err != nil {
			s.log.Error("promises cannot be kept, and are not given", "error", err)
			return nil
		}
	}
	return answer
}

// calls are the operations under way, by the counter of the ballot whose answers
// each is waiting for.
type calls struct {
	mu      sync.Mutex
	boxes   map[uint64]chan<- arrival
	counter uint64 // the highest used or seen
	number  uint64 // of the last operation
}

// An arrival is a message and who sent it.
type arrival struct {
	from    lease.MemberID
	message lease.Message
}

// pass hands an answer to the operation that waits for it, if there is one. One whose
// box is full loses it: it asks again.
func (s *Store) pass(b lease.Ballot, from lease.MemberID, m lease.Message) {
	if b.Proposer != s.proposer.Self || b.Incarnation != s.proposer.Incarnation {
		return
	}
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	select {
	case s.calls.boxes[b.Counter] <- arrival{from, m}:
	default:
	}
}

// next returns a counter that is larger than all before. It follows the wall clock,
// in milliseconds, so that it grows even where everything else was forgotten.
func (c *calls) next(seen uint64) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counter = max(c.counter, seen)
	c.counter = max(c.counter+1, uint64(max(0, time.Now().UnixMilli())))
	return c.counter
}

// route has answers to one ballot go to box, and no more to another one.
func (c *calls) route(old, ballot uint64, box chan<- arrival) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.boxes, old)
	if ballot != 0 {
		c.boxes[ballot] = box
	}
}

func (c *calls) operation() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.number++
	return c.number
}

// carryOut runs one operation until it ends or ctx does.
func (s *Store) carryOut(ctx context.Context, name string, change lease.Change) (lease.Result, error) {
	box := make(chan arrival, 4*len(s.terms.Members))
	timer := time.NewTimer(0)
	defer timer.Stop()
	op := s.proposer.NewOperation(name, s.calls.operation(), change)
	fast, _ := s.clock.now()
	out := op.Begin(fast, s.calls.next(0))
	routed := uint64(0)
	defer func() { s.calls.route(routed, 0, nil) }()
	for {
		if counter := op.Ballot().Counter; counter != routed {
			s.calls.route(routed, counter, box)
			routed = counter
		}
		for _, e := range out.Send {
			s.transport.Send(e.To, e.Message)
		}
		if out.Result.Verdict != lease.None {
			s.calls.next(op.Seen())
			s.scenes.show(name, out.Result.Sight)
			return out.Result, nil
		}
		fast, _ = s.clock.now()
		timer.Reset(out.Wake - fast)
		select {
		case <-ctx.Done():
			return lease.Result{}, s.gaveUp(context.Cause(ctx), op)
		case <-s.closed:
			return lease.Result{}, s.gaveUp(errClosed, op)
		case a := <-box:
			fast, _ = s.clock.now()
			out = op.Receive(fast, a.from, a.message)
		case <-timer.C:
			fast, _ = s.clock.now()
			out = op.Wake(fast, s.calls.next(op.Seen()))
		}
	}
}
