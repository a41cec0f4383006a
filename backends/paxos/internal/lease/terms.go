package lease

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Terms are what all members of a cluster must agree on, to the letter, before they
// exchange messages. A transport compares them when it connects.
type Terms struct {
	// Cluster is the name of the cluster.
	Cluster string
	// Members are the ids of all members, sorted.
	Members []MemberID
	// MaxTTL is the longest time to live of a record.
	MaxTTL time.Duration
	// Round is how long one attempt may take, from its prepare on.
	Round time.Duration
	// Drift bounds how far each member's clock may run fast or slow, in
	// thousandths.
	Drift int
}

// The limits of [Terms].
const (
	MinMembers = 1
	MaxMembers = 15
	MaxDrift   = 100
)

// Check says what is wrong with the terms.
func (t Terms) Check() error {
	switch {
	case t.Cluster == "":
		return errors.New("the cluster needs a name, the same at all members")
	case len(t.Members) < MinMembers:
		return errors.New("no members are listed")
	case len(t.Members) > MaxMembers:
		return fmt.Errorf("%d members, where %d are the most", len(t.Members), MaxMembers)
	case !slices.IsSorted(t.Members):
		return errors.New("the list of members is not sorted")
	case len(slices.Compact(slices.Clone(t.Members))) != len(t.Members):
		return errors.New("a member is listed twice")
	case t.Members[0] == "":
		return errors.New("a member has an empty id")
	case t.MaxTTL <= 0 || t.MaxTTL > 24*time.Hour:
		return fmt.Errorf("longest TTL %v: want more than 0 and at most 24h", t.MaxTTL)
	case t.Round <= 0 || t.Round > t.MaxTTL:
		return fmt.Errorf("round limit %v: want more than 0 and at most the longest TTL, %v", t.Round, t.MaxTTL)
	case t.Drift < 0 || t.Drift > MaxDrift:
		return fmt.Errorf("drift %d‰: want 0 to %d‰", t.Drift, MaxDrift)
	}
	return nil
}

// Majority is how many members decide.
func (t Terms) Majority() int { return len(t.Members)/2 + 1 }

// Life is how long acceptors keep a record with this TTL: so long that the slowest
// clock that the terms allow has not seen the TTL pass before the fastest acceptor
// has seen its life pass (rule 8).
func (t Terms) Life(ttl time.Duration) time.Duration { return t.stretch(ttl) }

// Quarantine is how long an acceptor that has started says nothing: until nothing
// that it may have accepted or promised before can matter (rule 7).
func (t Terms) Quarantine() time.Duration { return t.stretch(t.Life(t.MaxTTL) + t.Round) }

// Longest is the longest life that anybody proposes: a rescuer adds what its round has
// taken.
func (t Terms) Longest() time.Duration { return t.Life(t.MaxTTL) + (MaxRescues+1)*t.Round }

// stretch returns a span that lasts at least d on the slowest clock if it is
// measured on the fastest one.
func (t Terms) stretch(d time.Duration) time.Duration {
	fast, slow := int64(1000+t.Drift), int64(1000-t.Drift)
	whole, rest := int64(d)/slow, int64(d)%slow
	return time.Duration(whole*fast + (rest*fast+slow-1)/slow)
}
