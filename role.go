package election

import "sync"

// A Role is what a candidate is at present.
type Role string

// The roles.
const (
	RoleOrdinary  Role = "ordinary"  // it does not stand: there is no campaign, or it is unhealthy, or its rank below zero
	RoleCandidate Role = "candidate" // it campaigns
	RoleHeir      Role = "heir"      // it campaigns, and is next
	RoleLeader    Role = "leader"    // it leads
)

// roles tells of a candidate's roles.
type roles struct {
	tell func(Role) // nil if nobody wants to know
	out  outbox
	mu   sync.Mutex
	last Role
}

func newRoles(tell func(Role)) *roles { return &roles{tell: tell, last: RoleOrdinary} }

// change notes that the candidate is no longer one thing, but another.
func (r *roles) change(from, to Role) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == from {
		r.set(to)
	}
}

// is notes the candidate's present role, and tells of it if it is another.
func (r *roles) is(role Role) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set(role)
}

func (r *roles) set(role Role) {
	if role == r.last {
		return
	}
	r.last = role
	if r.tell != nil {
		r.out.post(func() { r.tell(role) })
	}
}
