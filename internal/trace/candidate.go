package trace

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/machine"
)

// A candidate is what is known of one by now.
type candidate struct {
	campaigns map[string]*campaign     // by nonce
	trusted   map[uint64]time.Duration // until when the core trusts its terms, on the boot clock, by token
	requests  []*request               // that the core has asked for, and that have no answer
	called    bool                     // it has called an heir, as a leader may without the core
}

// begin takes in that a campaign begins, and reports whether it can be replayed.
func (c *candidate) begin(ev history.Event) (replayed bool, _ error) {
	var b machine.Beginning
	if err := read(ev.Trace, &b); err != nil {
		return false, err
	}
	nonce := b.Config.Nonce
	if c.campaigns[nonce] != nil {
		return false, fmt.Errorf("campaign %s begins twice", nonce)
	}
	c.campaigns[nonce] = &campaign{state: *machine.New(&b.Config, b.Memory), replayed: !b.Named}
	return !b.Named, nil
}

// step takes in that a campaign took a step.
func (c *candidate) step(ev history.Event) error {
	var m machine.Move
	if err := read(ev.Trace, &m); err != nil {
		return err
	}
	on := c.campaigns[m.Nonce]
	if on == nil {
		return fmt.Errorf("campaign %s takes a step, and never began", m.Nonce)
	}
	if m.Event.Kind == machine.Answered {
		if err := c.hear(on, m); err != nil {
			return err
		}
	}
	if err := on.step(m); err != nil {
		return err
	}
	for _, f := range m.Effects {
		switch f.Kind {
		case machine.Send:
			c.requests = append(c.requests, newRequest(on, f, m.Now))
		case machine.Elected, machine.Extended:
			c.trusts(f)
		}
	}
	return nil
}

// trusts takes in until when the core trusts a term.
func (c *candidate) trusts(f machine.Effect) {
	if f.Key == machine.Lead {
		c.trusted[f.Record.Token] = max(c.trusted[f.Record.Token], f.Trust.Sent.Boot+f.Trust.Span)
	}
}

// leads takes in that the candidate leads, until some time if its term is not extended.
func (c *candidate) leads(ev history.Event) error {
	until, ok := c.trusted[ev.Token]
	switch {
	case !ok:
		return fmt.Errorf("it leads under token %d, which the core has not announced", ev.Token)
	case ev.Until > until:
		return fmt.Errorf("it leads under token %d until %v, and the core says until %v", ev.Token, ev.Until, until)
	}
	return nil
}

// hear takes in the answer that a campaign is given.
func (c *candidate) hear(on *campaign, m machine.Move) error {
	a := m.Event.Answer
	i := slices.IndexFunc(c.requests, func(r *request) bool { return r.of == on && r.ID == a.ID })
	if i < 0 {
		return fmt.Errorf("request %d is answered, which the core has not asked for, or which was answered before", a.ID)
	}
	r := c.requests[i]
	c.requests = slices.Delete(c.requests, i, i+1)
	return r.check(a, m.Now)
}

// send takes in that the store is asked for something.
func (c *candidate) send(ev history.Event) error {
	for _, r := range slices.Backward(c.requests) { // what a process that was killed had asked for may be among them
		if r.permits(ev) {
			r.send(ev)
			return nil
		}
	}
	switch {
	case ev.Op == history.OpGet || ev.Op == history.OpWatch || ev.Safe == history.Request || c.calls(ev):
	default:
		return fmt.Errorf("the store is asked to %s %q (token %d) in the safe of %s, which the core has not asked for",
			ev.Op, ev.Signature, ev.Token, safeName(ev.Safe))
	}
	return nil
}

// calls reports whether a request is one by which a leader calls an heir, or takes the call
// back. A call is signed by no campaign.
func (c *candidate) calls(ev history.Event) bool {
	if ev.Safe != history.Heir {
		return false
	}
	signature := ev.Signature
	if ev.Op == history.OpSwap {
		signature = ev.Next
	}
	switch ev.Op {
	case history.OpCreate, history.OpSwap:
		nonce := signature[strings.LastIndexByte(signature, '/')+1:]
		call := nonce != "" && !strings.Contains(nonce, ".")
		c.called = c.called || call
		return call
	case history.OpDelete:
		return c.called
	}
	return false
}

// answer takes in what the store has answered.
func (c *candidate) answer(ev history.Event) {
	for _, r := range c.requests {
		if r.call == ev.Call && r.call != 0 {
			r.answer = ev
		}
	}
}

func safeName(safe string) string {
	if safe == "" {
		return "the leader"
	}
	return "the " + safe
}
