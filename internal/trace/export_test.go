package trace

import (
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/machine"
)

// MoveOf returns the step that an event tells of.
func MoveOf(e history.Event) (m machine.Move, err error) {
	err = read(e.Trace, &m)
	return m, err
}

// Retell has an event tell of another step.
func Retell(e *history.Event, m machine.Move) { e.Trace = textOf(m) }
