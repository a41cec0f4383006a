package group

import (
	"github.com/electkv/election/internal/invitation"
)

// A Number names a group: equal numbers are the same group. It is never used again. Numbers have no
// order, and no meaning can be read from them. The Number of the zero Group is empty.
type Number string

// A Group is some processes that reach each other, one of which leads. The zero Group is none.
// It excludes nobody: another group, with another number, may lead at the same time.
type Group struct {
	// Number is never used again.
	Number Number
	// Leader is the ID of the member that leads.
	Leader string
	// Members are the IDs of all members, the leader among them, in the order of the alphabet. All
	// that are in the group have the same.
	Members []string
}

// public returns a group as users see it.
func public(g invitation.Group) Group {
	if g.Number.IsZero() {
		return Group{}
	}
	all := Group{Number: Number(g.Number.String()), Leader: string(g.Leader())}
	for _, id := range g.Members {
		all.Members = append(all.Members, string(id))
	}
	return all
}
