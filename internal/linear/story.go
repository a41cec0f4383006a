package linear

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// finish is the kind of the action that comes after all others of a safe.
const finish Kind = "the end"

// An action is an operation, and what the whole history tells about it.
type action struct {
	*Operation
	// token and revision are those of what the operation writes, zero if no client
	// was ever told.
	token, revision uint64
	// dies is when the client dies, never if it does not.
	dies time.Duration
	// moves says of a refresh of unknown outcome that it may move its record, and be seen by that.
	moves bool
	// spans says of a move when there was a refresh that may have done it.
	spans []span
}

// end is the last moment at which the operation can happen.
func (a *action) end() time.Duration {
	if a.Outcome == Unknown {
		return never
	}
	return a.Return
}

// A story is the part of a history that is about one safe.
type story struct {
	name    string
	actions []*action
	moves   []*action // those that were seen
}

// A write is known by what it writes.
type write struct{ signature, value, note string }

var errNotUnique = errors.New("linear: the history has two writes of one signature, value and note")

// stories splits a history by safes, in the order of their first operations.
func stories(history []Operation) ([]*story, error) {
	deaths := make(map[int]time.Duration)
	for i := range history {
		if op := &history[i]; op.Kind == Death {
			deaths[op.Client] = op.Call
		}
	}
	var all []*story
	byName := make(map[string]*story)
	for i := range history {
		op := &history[i]
		if op.Kind == Death {
			continue
		}
		if err := whole(op); err != nil {
			return nil, fmt.Errorf("linear: operation %d: %w", i, err)
		}
		for _, part := range parts(op) {
			s := byName[part.Name]
			if s == nil {
				s = &story{name: part.Name}
				byName[part.Name] = s
				all = append(all, s)
			}
			a := &action{Operation: part, dies: never}
			if at, dead := deaths[op.Client]; dead {
				a.dies = at
			}
			s.actions = append(s.actions, a)
		}
	}
	for _, s := range all {
		if err := s.number(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// parts returns what an operation is in the stories of the safes that it is about. A
// hand-over in one step that was done has shown what the heir's safe held, as a read
// does, and a delete that was done has shown it vacant, if it had to be.
func parts(op *Operation) []*Operation {
	if op.Place == "" || op.Outcome != Done {
		return []*Operation{op}
	}
	beside := &Operation{
		Client: op.Client, Kind: Get, Name: op.Place, Call: op.Call, Return: op.Return, Outcome: Done, Got: op.Heir,
	}
	if op.Kind == Delete {
		beside.Outcome = Vacant
	}
	return []*Operation{op, beside}
}

// whole refuses an operation that lacks what the model looks at.
func whole(op *Operation) error {
	lacks := op.Given == nil && op.Kind != Get ||
		op.Next == nil && (op.Kind == Swap || op.Kind == HandOver) ||
		op.Heir == nil && op.Kind == HandOver ||
		op.Got == nil && op.Kind != Delete && op.Outcome == Done
	if lacks {
		return fmt.Errorf("%s, %s: a record is missing", op.Kind, op.Outcome)
	}
	return nil
}

// number notes at each write the token and the revision that it gave, by what
// any client was told of it, and finds the moves. If clients were told different
// things otherwise, some of them cannot be true, and the search fails at them.
func (s *story) number() error {
	tokens := make(map[string]uint64)
	revisions := make(map[write][]sight)
	twice := make(map[write]bool)
	writers := make(map[uint64]write)
	for _, a := range s.actions {
		if a.Got == nil {
			continue
		}
		seen := write{a.Got.Signature, a.Got.Value, a.Got.Note}
		if tokens[a.Got.Signature] == 0 {
			tokens[a.Got.Signature] = a.Got.Token
		}
		if writer, taken := writers[a.Got.Revision]; !taken {
			writers[a.Got.Revision] = seen
		} else if writer != seen {
			twice[seen] = true
		}
		revisions[seen] = see(revisions[seen], a.Got.Revision, a.Call, a.Return)
	}
	spans := s.moving()
	known := make(map[write]bool)
	for _, a := range s.actions {
		rec := a.written()
		if rec == nil {
			continue
		}
		w := write{rec.Signature, rec.Value, rec.Note}
		if known[w] {
			return fmt.Errorf("%w: %q: %v", errNotUnique, s.name, rec)
		}
		known[w] = true
		a.token = tokens[rec.Signature]
		if twice[w] {
			a.revision = ofTwo
			continue
		}
		s.settle(a, revisions[w], spans[rec.Signature])
	}
	return nil
}

// ofTwo is the revision of a write that was given that of another one. No reader
// is told it.
const ofTwo = math.MaxUint64

// operations returns the story as porcupine wants it.
func (s *story) operations() []porcupine.Operation {
	ops := make([]porcupine.Operation, 0, len(s.actions)+1)
	for _, a := range slices.Concat(s.actions, s.moves) {
		ops = append(ops, porcupine.Operation{ClientId: a.Client, Input: a, Call: int64(a.Call), Return: int64(a.end())})
	}
	const last = int64(never) - 1
	end := &action{Operation: &Operation{Kind: finish}}
	return append(ops, porcupine.Operation{Input: end, Call: last, Return: last})
}

// model is the safe as porcupine wants it.
func model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return safe{} },
		Step: func(state, input, _ any) (bool, any) {
			next, ok := state.(safe).take(input.(*action))
			return ok, next
		},
		DescribeOperation: func(input, _ any) string { return input.(*action).String() },
		DescribeState:     func(state any) string { return state.(safe).String() },
	}
}
