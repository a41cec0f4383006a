package trace

import (
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/machine"
)

// Tracer returns a tracer that writes into a history. note fills in whose campaign it is;
// it may be called by several goroutines at once.
func Tracer(note func(history.Event)) machine.Tracer { return tracer{note} }

type tracer struct{ note func(history.Event) }

// Begun implements [machine.Tracer].
func (t tracer) Begun(b machine.Beginning) {
	t.note(history.Event{Kind: history.Begun, Trace: textOf(b)})
}

// Stepped implements [machine.Tracer].
func (t tracer) Stepped(m machine.Move) {
	t.note(history.Event{At: m.Now.Boot, Kind: history.Stepped, Trace: textOf(m)})
}
