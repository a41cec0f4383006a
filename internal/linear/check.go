package linear

import (
	"time"

	"github.com/anishathalye/porcupine"
)

// A Result is what a check has come to.
type Result string

// The results: the history is linearizable, it is not, or there was no time to
// tell.
const (
	Kept      Result = "kept"
	Broken    Result = "broken"
	Undecided Result = "undecided"
)

// A Verdict is the result of a check, and what it is about.
type Verdict struct {
	Result Result
	// Operations, Unknown and Safes count the operations, those of unknown
	// outcome, and the safes that they are about.
	Operations, Unknown, Safes int
	// Surfaced counts the writes of unknown outcome that a client saw to have
	// happened.
	Surfaced int
	// Names are the safes whose story is broken or, if none is, undecided.
	Names []string

	history []Operation
}

// Check judges a history, within about the given time. It returns an error if
// the history is not one that can be judged; see the package's documentation.
func Check(history []Operation, timeout time.Duration) (Verdict, error) {
	all, err := stories(history)
	if err != nil {
		return Verdict{}, err
	}
	v := Verdict{Result: Kept, Safes: len(all), history: history}
	deadline := time.Now().Add(timeout)
	var broken, undecided []string
	for _, s := range all {
		v.Operations += len(s.actions)
		unknown, surfaced := s.unknown()
		v.Unknown += unknown
		v.Surfaced += surfaced
		// Zero would be no limit at all.
		rest := max(time.Until(deadline), time.Nanosecond)
		switch porcupine.CheckOperationsTimeout(model(), s.operations(), rest) {
		case porcupine.Illegal:
			broken = append(broken, s.name)
		case porcupine.Unknown:
			undecided = append(undecided, s.name)
		case porcupine.Ok:
		}
	}
	switch {
	case len(broken) > 0:
		v.Result, v.Names = Broken, broken
	case len(undecided) > 0:
		v.Result, v.Names = Undecided, undecided
	}
	return v, nil
}

// unknown counts the operations of unknown outcome, and the writes among them
// that surfaced.
func (s *story) unknown() (all, surfaced int) {
	for _, a := range s.actions {
		if a.Outcome != Unknown {
			continue
		}
		all++
		if a.revision != 0 {
			surfaced++
		}
	}
	return all, surfaced
}
