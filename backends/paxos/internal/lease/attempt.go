package lease

import (
	"slices"
	"time"
)

// decide proposes what the change makes of what a majority has promised to keep
// still, or ends the operation.
func (o *Operation) decide(now time.Duration, v view) Output {
	if len(o.mine) > 0 && now >= o.first+o.p.Terms.MaxTTL {
		// What acceptors knew of the first attempt, those may have forgotten by now
		// that have restarted.
		return o.end(Unclear, State{}, sight(v))
	}
	if r, ok := v.state.receipt(o.receipt()); ok {
		done := o.written(r.Counter)
		if v.settled {
			return o.end(Written, done, sight(v))
		}
		return o.settle(now, v, Written, done)
	}
	if len(o.mine) > 0 && v.state.forgot(o.mine[0].ballot.Counter) {
		return o.end(Unclear, State{}, sight(v))
	}
	next, refused := o.change.apply(v, o.ballot)
	if refused != None {
		// An earlier attempt's proposal may lie with a member that is silent now. It
		// can come to nothing once a majority has accepted something newer.
		outlived := len(o.mine) == 0 || v.ballot.Counter > o.mine[len(o.mine)-1].ballot.Counter
		if v.settled && outlived {
			return o.end(refused, v.found(), sight(v))
		}
		return o.settle(now, v, refused, v.found())
	}
	next = receipted(next, v.state, o.receipt())
	if len(o.mine) == 0 {
		o.first = now
	}
	o.mine = append(o.mine, written{ballot: o.ballot, state: next})
	var life time.Duration
	if !next.Vacant() {
		life = o.p.Terms.Life(next.TTL)
	}
	return o.propose(now, v, next, life, Written, next)
}

// settle proposes what is there already, so that a majority holds it: completes a
// write that reached some, or has a majority say that a record is over. It adds
// nothing to a record's life but what the round has taken, which nobody can tell
// from it, and that MaxRescues times at most.
func (o *Operation) settle(now time.Duration, v view, verdict Verdict, done State) Output {
	next, life := State{Receipts: v.state.Receipts}, time.Duration(0)
	if v.live {
		if len(o.reports()) < len(o.voices) && !o.listened {
			// The others may hold the same. One that holds something else would refuse
			// this for as long as that lives, and be heard first again and again.
			o.listened = true
			o.again = min(o.again, now+max(now-o.sent, time.Millisecond))
			return o.waiting()
		}
		if v.state.Rescues >= MaxRescues {
			o.note = noteRescued
			return o.rest(now)
		}
		next = v.state
		next.Rescues++
		// What is left was told after the prepare was sent, and runs from a promise
		// that may have been given before it was told.
		life = v.life + o.p.Terms.Life(now-o.sent)
	}
	return o.propose(now, v, next, life, verdict, done)
}

func (o *Operation) propose(now time.Duration, v view, next State, life time.Duration, verdict Verdict, done State) Output {
	o.phase, o.stage, o.verdict, o.done = proposing, proposing, verdict, done
	o.proposed = Propose{Safe: o.safe, Ballot: o.ballot, Replaces: v.lease(), State: next, Life: life}
	o.again = now + o.p.Terms.Round/2
	out := o.waiting()
	for _, voice := range o.voices {
		if voice.promised && !voice.refused {
			out.send(voice.member, o.proposal(voice))
		}
	}
	return out
}

// count ends the operation if a majority has accepted, and the attempt if none can.
func (o *Operation) count(now time.Duration) Output {
	accepted, possible := 0, 0
	for _, v := range o.voices {
		if v.accepted {
			accepted++
		}
		if !v.refused {
			possible++
		}
	}
	if accepted >= o.p.Terms.Majority() {
		m := o.proposed
		out := o.end(o.verdict, o.done, Sight{Ballot: o.ballot, State: m.State, Live: !m.State.Vacant(), Life: m.Life})
		for _, v := range o.voices {
			if v.member != o.p.Self {
				out.send(v.member, Commit{Safe: o.safe, Ballot: o.ballot, State: m.State, Life: m.Life})
			}
		}
		return out
	}
	if possible < o.p.Terms.Majority() {
		if o.phase == preparing && !o.hurried {
			// It came too late, and knows now what to say. After a rest it would come
			// too late again where others go on all the time.
			o.hurried = true
			return o.pause(now, 0, preparing)
		}
		send := o.retract()
		out := o.rest(now)
		out.Send = send
		return out
	}
	return o.waiting()
}

// retract takes back what the attempt has proposed, from those who may hold it, if
// they are no majority and never will be. A copy with a minority would be a live lease
// of nobody, and keep that minority from granting any other one.
func (o *Operation) retract() []Envelope {
	var out Output
	for _, v := range o.voices {
		if !v.void {
			out.send(v.member, Retract{Safe: o.safe, Ballot: o.ballot})
		}
	}
	if o.phase != proposing || len(out.Send) >= o.p.Terms.Majority() {
		return nil
	}
	return out.Send
}

func (o *Operation) end(verdict Verdict, state State, s Sight) Output {
	o.phase = over
	return Output{Result: Result{Verdict: verdict, State: state, Sight: s}}
}

// rest gives an attempt up, and leaves others a moment to finish theirs: as long as
// this one took, about, and longer the more of them have failed.
func (o *Operation) rest(now time.Duration) Output {
	o.tries++
	o.hurried = false
	next := preparing
	if o.phase == asking && o.asked < maxQuestions {
		next = asking
	}
	d := min(max(now-o.sent, time.Millisecond), o.p.Terms.Round/4) << min(o.tries, 5)
	return o.pause(now, o.scatter(min(d, o.p.Terms.Round)), next)
}

func (o *Operation) pause(now, d time.Duration, next phase) Output {
	o.phase, o.again, o.next = resting, now+d, next
	return o.waiting()
}

// scatter returns a span up to d that differs from member to member, from operation
// to operation and from attempt to attempt.
func (o *Operation) scatter(d time.Duration) time.Duration {
	z := o.p.Incarnation + o.number*0x9e3779b97f4a7c15 + uint64(o.tries)*0xd1b54a32d192ed03
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	return time.Duration(z % uint64(d+1))
}

// Wake tells the operation what time it is. The counter is as for Begin.
func (o *Operation) Wake(now time.Duration, counter uint64) Output {
	switch {
	case o.phase == over:
		return Output{}
	case o.phase == resting && now < o.again:
		return o.waiting()
	case o.phase == resting && o.next == asking:
		return o.ask(now, counter)
	case o.phase == resting:
		return o.prepare(now, counter)
	case now >= o.sent+o.p.Terms.Round:
		return o.rest(now)
	case now < o.again:
		return o.waiting()
	case o.phase == asking && len(o.reports()) >= o.p.Terms.Majority():
		return o.rest(now) // they do not agree, and the others are silent
	case o.phase == preparing && o.listened:
		return o.consider(now)
	}
	return o.toSilent(now)
}

func (o *Operation) receipt() Receipt {
	return Receipt{Member: o.p.Self, Incarnation: o.p.Incarnation, Operation: o.number, Counter: o.ballot.Counter}
}

// written returns what the attempt with that counter has proposed.
func (o *Operation) written(counter uint64) State {
	i := slices.IndexFunc(o.mine, func(w written) bool { return w.ballot.Counter == counter })
	if i < 0 {
		return State{}
	}
	return o.mine[i].state
}

func sight(v view) Sight { return Sight{Ballot: v.ballot, State: v.state, Live: v.live, Life: v.life} }

// found is the record that a view shows, if it is live.
func (v view) found() State {
	if v.live {
		return v.state
	}
	return State{}
}
