package invitation

import (
	"cmp"
	"fmt"
	"slices"
)

// An ID names a process. IDs are compared as strings: "10" comes before "2".
type ID string

// A Number names a group. It is entered at most once by each of its members, and never
// formed again.
type Number struct {
	// By formed the group and leads it. Empty in the number of no group.
	By ID
	// Incarnation is drawn at random by each start of the leader.
	Incarnation uint64
	// Counter is larger than in each number that this incarnation has used before.
	Counter uint64
}

// IsZero reports whether it is the number of no group.
func (n Number) IsZero() bool { return n == Number{} }

func (n Number) String() string { return fmt.Sprintf("%s/%x.%d", n.By, n.Incarnation, n.Counter) }

// A Group is some processes, one of which leads. All that have entered one number agree on
// both. Nothing keeps another group from having a leader at the same time.
type Group struct {
	Number Number
	// Members are sorted, the leader among them. They are not to be changed.
	Members []ID
}

// Leader returns the member that leads.
func (g Group) Leader() ID { return g.Number.By }

// Has reports whether a process is a member.
func (g Group) Has(id ID) bool {
	_, ok := slices.BinarySearch(g.Members, id)
	return ok
}

// better reports whether the group of a leader with so many members leads one that merges
// with another's: it is larger, or as large and its leader's ID is smaller.
func better(leader ID, size int, other ID, otherSize int) bool {
	return cmp.Or(cmp.Compare(otherSize, size), cmp.Compare(leader, other)) < 0
}
