package invitation

import (
	"errors"
	"fmt"
	"slices"
)

// What messages may say at most.
const (
	// MaxMembers is how many processes may be in a group, and so how many there may be.
	MaxMembers = 64
	// MaxID is the length of the longest ID, in bytes.
	MaxID = 512
)

// A Message is what processes tell each other: [Probe], [Answer], [Invite], [Accept],
// [Join], [Ready], [Heartbeat], [Alive] or [Gone]. Messages are values: once sent they are not
// changed. Each of them may be lost, delayed, doubled and overtaken.
type Message interface {
	// About returns the number of the group that the message is about.
	About() Number
}

// A Probe asks a process which group it is in.
type Probe struct {
	Number Number // of the group that the sender leads
	Size   int    // of that group
}

// An Answer answers a [Probe].
type Answer struct {
	Probe  Number // of the probe
	Number Number // of the sender's group, or of that which it is joining; zero if there is none
	// Members are those of the sender's group if the sender leads it, and empty otherwise.
	Members []ID
}

// An Invite asks whether a member of another group would join. It stops nobody's work.
type Invite struct {
	Number Number // of the group that is to be formed
	Old    Number // of the group that the receiver is in
	Size   int    // of the group that the sender leads
}

// An Accept says that the sender is in the group Old, and has got the invitation to Number.
type Accept struct {
	Number Number
	Old    Number
}

// A Join tells a process that is in the group Old to leave it for Number, and to say when its
// work for Old has returned.
type Join struct {
	Number Number
	Old    Number
}

// A Ready says that the sender waits for the group to be formed, and does no work.
type Ready struct{ Number Number }

// A Heartbeat tells a member that the leader of its group is alive. The first ones tell
// it that the group is formed, and of whom.
type Heartbeat struct {
	Number Number
	// Members are all members, or empty if the receiver has confirmed that it knows them.
	Members []ID
}

// An Alive answers a [Heartbeat].
type Alive struct{ Number Number }

// A Gone says that the sender is not in a group, and never will be.
type Gone struct{ Number Number }

// About implements [Message].
func (m Probe) About() Number { return m.Number }

// About implements [Message].
func (m Answer) About() Number { return m.Number }

// About implements [Message].
func (m Invite) About() Number { return m.Number }

// About implements [Message].
func (m Accept) About() Number { return m.Number }

// About implements [Message].
func (m Join) About() Number { return m.Number }

// About implements [Message].
func (m Ready) About() Number { return m.Number }

// About implements [Message].
func (m Heartbeat) About() Number { return m.Number }

// About implements [Message].
func (m Alive) About() Number { return m.Number }

// About implements [Message].
func (m Gone) About() Number { return m.Number }

// Check says what is wrong with a message from a process, if anything is: a size, or that it
// speaks for a group that somebody else leads. [Step] drops what Check refuses.
func Check(from ID, m Message) error {
	switch m := m.(type) {
	case Probe:
		return errors.Join(leads(from, m.Number), checkSize(m.Size))
	case Invite:
		return errors.Join(leads(from, m.Number), checkSize(m.Size), checkNumber(m.Old))
	case Join:
		return errors.Join(leads(from, m.Number), checkNumber(m.Old))
	case Heartbeat:
		return errors.Join(leads(from, m.Number), checkMembers(m.Number, m.Members))
	case Answer:
		err := errors.Join(checkNumber(m.Probe), checkNumber(m.Number), checkMembers(m.Number, m.Members))
		if err == nil && len(m.Members) > 0 {
			err = leads(from, m.Number)
		}
		return err
	case Accept:
		return errors.Join(checkNumber(m.Number), checkNumber(m.Old))
	case nil:
		return errors.New("no message")
	}
	return checkNumber(m.About())
}

func leads(from ID, n Number) error {
	if n.By != from {
		return fmt.Errorf("%q speaks for group %v, which %q leads", from, n, n.By)
	}
	return checkNumber(n)
}

func checkNumber(n Number) error {
	if len(n.By) > MaxID {
		return fmt.Errorf("an ID of %d bytes: want at most %d", len(n.By), MaxID)
	}
	if n.By == "" && !n.IsZero() {
		return errors.New("a number without a leader")
	}
	return nil
}

func checkSize(n int) error {
	if n < 1 || n > MaxMembers {
		return fmt.Errorf("a group of %d: want 1 to %d", n, MaxMembers)
	}
	return nil
}

func checkMembers(n Number, ids []ID) error {
	if len(ids) == 0 {
		return nil
	}
	if err := checkSize(len(ids)); err != nil {
		return err
	}
	if !(Group{Members: ids}).Has(n.By) {
		return fmt.Errorf("the leader %q is not among the members %q", n.By, ids)
	}
	return checkIDs(ids)
}

// checkIDs says what is wrong with a list of processes.
func checkIDs(ids []ID) error {
	for i, id := range ids {
		if id == "" || len(id) > MaxID {
			return fmt.Errorf("an ID of %d bytes: want 1 to %d", len(id), MaxID)
		}
		if i > 0 && id <= ids[i-1] {
			return fmt.Errorf("%q follows %q: want sorted IDs, each once", id, ids[i-1])
		}
	}
	if len(ids) > MaxMembers {
		return fmt.Errorf("%d processes: want at most %d", len(ids), MaxMembers)
	}
	return nil
}

// sorted returns a list of processes in order, each once.
func sorted(ids []ID) []ID {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return slices.Compact(ids)
}
