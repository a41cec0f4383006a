package trace_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/internal/trace"
)

// A tape is a history that is tampered with.
type tape struct {
	t      *testing.T
	events []history.Event
}

// find returns where the first event is like that.
func (p *tape) find(like func(history.Event) bool) int {
	i := slices.IndexFunc(p.events, like)
	require.GreaterOrEqual(p.t, i, 0)
	return i
}

// step returns where the first step is like that.
func (p *tape) step(like func(machine.Move) bool) int {
	return p.find(func(e history.Event) bool { return e.Kind == history.Stepped && like(p.move(e)) })
}

func (p *tape) move(e history.Event) machine.Move {
	m, err := trace.MoveOf(e)
	require.NoError(p.t, err)
	return m
}

// change changes the first step that is like that.
func (p *tape) change(like func(machine.Move) bool, to func(*machine.Move)) {
	i := p.step(like)
	m := p.move(p.events[i])
	to(&m)
	trace.Retell(&p.events[i], m)
}

func (p *tape) drop(i int)                    { p.events = slices.Delete(p.events, i, i+1) }
func (p *tape) insert(i int, e history.Event) { p.events = slices.Insert(p.events, i, e) }

func kind(k history.Kind) func(history.Event) bool {
	return func(e history.Event) bool { return e.Kind == k }
}

func sends(op machine.Op) func(machine.Move) bool {
	return func(m machine.Move) bool {
		return slices.ContainsFunc(m.Effects, func(f machine.Effect) bool { return f.Kind == machine.Send && f.Request.Op == op })
	}
}

func given(k machine.EventKind) func(machine.Move) bool {
	return func(m machine.Move) bool { return m.Event.Kind == k }
}

// renewed is the answer to a refresh.
func renewed(m machine.Move) bool {
	return m.Event.Kind == machine.Answered && slices.ContainsFunc(m.Effects, func(f machine.Effect) bool { return f.Kind == machine.Extended })
}

// mutations are what may be wrong with a trace, each with a part of what is said of it.
func mutations() map[string]func(*tape) (why string) {
	return map[string]func(*tape) string{
		"an effect is dropped": func(p *tape) string {
			p.change(sends(machine.Refresh), func(m *machine.Move) { m.Effects = nil })
			return "the core decides"
		},
		"an effect is another": func(p *tape) string {
			p.change(sends(machine.Refresh), func(m *machine.Move) { m.Effects[0].Request.Within++ })
			return "the core decides"
		},
		"a step is dropped": func(p *tape) string {
			p.drop(p.step(sends(machine.Refresh)))
			return "the core has not asked for"
		},
		"an answer is doubled": func(p *tape) string {
			i := p.step(renewed)
			p.insert(i+1, p.events[i])
			return "which was answered before"
		},
		"an answer is to nothing": func(p *tape) string {
			p.change(renewed, func(m *machine.Move) { m.Event.Answer.ID += 1000 })
			return "which the core has not asked for"
		},
		"an answer is another's": func(p *tape) string {
			p.change(renewed, func(m *machine.Move) { m.Event.Answer.Key = machine.Place })
			return "answered to the heir"
		},
		"an answer is better than the store's": func(p *tape) string {
			p.change(renewed, func(m *machine.Move) { m.Event.Answer.Record.TTL += time.Millisecond })
			return "the store has granted"
		},
		"an answer left too early": func(p *tape) string {
			p.change(renewed, func(m *machine.Move) { m.Event.Answer.Sent.Mono -= ttl })
			return "before it was asked for"
		},
		"an answer left too late": func(p *tape) string {
			p.change(renewed, func(m *machine.Move) { m.Event.Answer.Sent.Boot += ttl })
			return "after its answer"
		},
		"an answer left later than is told": func(p *tape) string {
			p.change(renewed, func(m *machine.Move) { m.Event.Answer.Sent.Boot = m.Now.Boot })
			return "is said to have left at"
		},
		"the clock goes back": func(p *tape) string {
			p.change(renewed, func(m *machine.Move) { m.Now.Mono -= ttl; m.Event.Answer.Sent.Mono -= ttl })
			return "before it was asked for"
		},
		"the clock goes back between requests": func(p *tape) string {
			p.change(given(machine.Say), func(m *machine.Move) { m.Now.Mono -= ttl })
			return "comes after one at"
		},
		"somebody leads who was not elected": func(p *tape) string {
			p.events[p.find(kind(history.Elected))].Token++
			return "which the core has not announced"
		},
		"somebody trusts a lease for longer": func(p *tape) string {
			p.events[p.find(kind(history.Elected))].Until = boottime.Now() + 2*ttl
			return "and the core says until"
		},
		"a write that nobody asked for": func(p *tape) string {
			i := p.find(func(e history.Event) bool { return e.Kind == history.Sent && e.Op == "refresh" })
			e := p.events[i]
			e.Op, e.Call = "delete", 1000
			p.insert(i, e)
			return "the store is asked to delete"
		},
		"a request that does not leave": func(p *tape) string {
			p.drop(p.find(func(e history.Event) bool { return e.Kind == history.Sent && e.Op == "refresh" }))
			return "the store was never asked"
		},
		"an answer that nobody gave": func(p *tape) string {
			p.drop(p.find(func(e history.Event) bool { return e.Kind == history.Answered && e.Op == "refresh" }))
			return "before the store has answered"
		},
		"a watch of what nobody wants to see": func(p *tape) string {
			p.change(given(machine.Saw), func(m *machine.Move) { m.Event.Key = machine.Place })
			return "does not want to see"
		},
		"a campaign that begins twice": func(p *tape) string {
			i := p.find(kind(history.Begun))
			p.insert(i, p.events[i])
			return "begins twice"
		},
		"a campaign of another": func(p *tape) string {
			p.change(given(machine.Enter), func(m *machine.Move) { m.Nonce = "none" })
			return "never began"
		},
		"a step after the last": func(p *tape) string {
			i := p.step(func(m machine.Move) bool { return slices.Contains(m.Effects, machine.Effect{Kind: machine.Left}) })
			m := p.move(p.events[i])
			m.Event, m.Effects = machine.Event{Kind: machine.Tick}, nil
			p.insert(i+1, p.events[i])
			trace.Retell(&p.events[i+1], m)
			return "after it has left"
		},
		"no trace at all": func(p *tape) string {
			p.events[p.find(kind(history.Stepped))].Trace = nil
			return "EOF"
		},
	}
}

func TestATraceThatWasTamperedWithIsRejected(t *testing.T) {
	h := newPlay().resigned(t, election.Options{})
	require.Equal(t, oracle.Kept, judge(h).Verdict)
	for name, mutate := range mutations() {
		t.Run(name, func(t *testing.T) {
			p := &tape{t, slices.Clone(h.Events)}
			why := mutate(p)
			f := judge(history.History{Events: p.events})
			require.Equal(t, oracle.Broken, f.Verdict, f.Detail)
			require.Contains(t, f.Detail, why)
		})
	}
}
