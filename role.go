package election

import "sync"

// A Role is what a candidate is at present.
type Role string

// The roles.
const (
	RoleIdle      Role = "idle"      // it does not compete: there is no campaign, or its health check fails
	RoleCandidate Role = "candidate" // it campaigns
	RoleHeir      Role = "heir"      // it campaigns, and is next
	RoleLeader    Role = "leader"    // it leads
)

// roles reports a candidate's roles. It is nil if there is no hook for them.
type roles struct {
	tell func(Role)
	out  outbox
	mu   sync.Mutex
	last Role
}

func newRoles(tell func(Role)) *roles {
	if tell == nil {
		return nil
	}
	return &roles{tell: tell, last: RoleIdle}
}

// flush waits until all roles have been told, for a second at most.
func (r *roles) flush() {
	if r != nil {
		r.out.flush()
	}
}

// change notes that the candidate is no longer one thing, but another.
func (r *roles) change(from, to Role) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == from {
		r.set(to)
	}
}

// is notes the candidate's present role, and reports it if it has changed.
func (r *roles) is(role Role) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set(role)
}

func (r *roles) set(role Role) {
	if role == r.last {
		return
	}
	r.last = role
	r.out.post(func() { r.tell(role) })
}
