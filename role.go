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
	RoleObserver  Role = "observer"  // it does not compete, and is in the roster (Attend); of a Member only
)

// roles keeps a candidate's present role, and reports changes to the hooks.
type roles struct {
	tell func(Role) // nil if there is no such hook
	out  outbox
	mu   sync.Mutex
	last Role
}

// now returns the present role.
func (r *roles) now() Role {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// change notes that the candidate is no longer one thing, but another.
func (r *roles) change(c *campaign, from, to Role) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == from {
		r.set(c, to)
	}
}

// is notes the candidate's present role, and reports it if it has changed.
func (r *roles) is(c *campaign, role Role) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set(c, role)
}

func (r *roles) set(c *campaign, role Role) {
	if role == r.last {
		return
	}
	if hook := c.opts.Hooks.RoleChange; hook != nil {
		tell(c.base, c.opts.Hooks, hookRoom, hook, RoleChangeInfo{c.hookInfo(), r.last, role})
	}
	r.last = role
	if r.tell != nil {
		r.out.post(func() { r.tell(role) })
	}
}
