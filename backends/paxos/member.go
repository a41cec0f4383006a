package paxoskv

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/electkv/election/backends/paxos/internal/lease"
)

// deliver takes what another member, or this one, has sent.
func (s *Store) deliver(from lease.MemberID, m lease.Message) {
	if lease.Forged(from, m) {
		s.log.Warn("message dropped: it speaks for another", "peer", string(from))
		return
	}
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
		life := min(m.Life, s.terms.Longest())
		s.scenes.tell(m.Safe, lease.Sight{Ballot: m.Ballot, State: m.State, Live: !m.State.Vacant(), Life: life})
	default:
		if answer := s.grant(m); answer != nil {
			s.transport.Send(from, answer)
		}
	}
}

// learn tells the acceptor of a counter that a majority has passed.
func (s *Store) learn(counter uint64) {
	if s.acceptor == nil || counter <= lease.Seeds {
		return // of which it goes along with all
	}
	s.granting.Lock()
	defer s.granting.Unlock()
	s.acceptor.Learn(counter)
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
	counter uint64 // the highest used or followed
	limit   lease.Limit
	number  uint64 // of the last operation
}

// errUsedUp means that there is no ballot for another attempt.
var errUsedUp = errors.New("the counters of this cluster are used up: stop all members, remove what is in their folders, and start them again")

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

// errUnclear means that an operation has no outcome that it could tell.
var errUnclear = errors.New("the members disagreed for too long to say whether it was done")

// next returns a counter that is larger than all that were used here, and, within the
// limit, than those that an operation has heard of. It follows the wall clock, in
// milliseconds, so that it grows even where everything else was forgotten.
func (c *calls) next(now time.Duration, op *lease.Operation) (uint64, error) {
	c.follow(now, op)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counter >= lease.MaxCounter {
		return 0, errUsedUp
	}
	c.counter = max(c.counter+1, seed(time.Now()))
	return c.counter, nil
}

// follow notes the counters that an operation has heard of.
func (c *calls) follow(now time.Duration, op *lease.Operation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit.Learn(op.Known())
	c.counter = max(c.counter, c.limit.Follow(now, op.Seen()))
}

// seed is what the wall clock makes of a counter.
func seed(now time.Time) uint64 { return uint64(min(max(0, now.UnixMilli()), lease.Seeds)) }

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
	counter, err := s.calls.next(fast, op)
	if err != nil {
		return lease.Result{}, err
	}
	out := op.Begin(fast, counter)
	began, routed := time.Now(), uint64(0)
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
			s.calls.follow(fast, op)
			s.learn(op.Known())
			s.scenes.show(name, out.Result, began)
			if out.Result.Verdict == lease.Unclear {
				return out.Result, s.gaveUp(errUnclear, op)
			}
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
			if counter, err = s.calls.next(fast, op); err != nil {
				return lease.Result{}, s.gaveUp(err, op)
			}
			out = op.Wake(fast, counter)
		}
	}
}
