package group

import (
	"context"
	"iter"

	"github.com/electkv/election/internal/invitation"
)

// Watch yields the group that this process is in, now and each time that it changes: the zero Group
// while it is in none, as between two groups. A loop that is slow misses what was over meanwhile,
// and gets the newest. Watch ends when ctx does, or the member is closed.
//
// By the time a group is yielded, it may be over.
func (m *Member) Watch(ctx context.Context) iter.Seq[Group] {
	return func(yield func(Group) bool) {
		var last invitation.Number
		for first := true; ctx.Err() == nil; first = false {
			m.mu.Lock()
			g, changed, closed := m.group, m.changed, m.closed
			m.mu.Unlock()
			if (first || g.Number != last) && !yield(public(g)) || closed {
				return
			}
			last = g.Number
			select {
			case <-changed:
			case <-m.done:
			case <-ctx.Done():
			}
		}
	}
}
