package lease

import "time"

// A view is what a majority's reports say together.
type view struct {
	ballot Ballot // of the newest state reported
	state  State
	// live is set if the state is a record, and no acceptor that has accepted it
	// has seen its life pass. The life of each has begun after the round that wrote
	// it, so where one has passed nobody trusts the record any more.
	live bool
	life time.Duration // the longest left, if live
	// settled is set if no majority can report anything older, and nothing that is
	// on its way can make it otherwise but as a change of its own. A record that has
	// expired is not: a refresh that was prepared before may bring it back, until
	// its end is written.
	settled bool
}

// look puts reports of different acceptors together.
func look(reports []Report, majority int) view {
	var v view
	for _, r := range reports {
		if r.Accepted.Counter > v.ballot.Counter {
			v.ballot, v.state = r.Accepted, r.State
		}
	}
	v.live = !v.state.Vacant()
	same := 0
	for _, r := range reports {
		if r.Accepted != v.ballot {
			continue
		}
		same++
		if r.Expired {
			v.live = false
		}
		v.life = max(v.life, r.Life)
	}
	v.settled = same >= majority && !v.over()
	if !v.live {
		v.life = 0
	}
	return v
}

// over reports whether the state is a record whose life has passed.
func (v view) over() bool { return !v.live && !v.state.Vacant() }

// lease names what the view shows, whether it is live or not.
func (v view) lease() Lease {
	if v.state.Vacant() {
		return Lease{}
	}
	return Lease{Tenure: v.state.Tenure, Ballot: v.ballot}
}
