// Package group puts processes that reach each other into groups, each with a leader. When the
// network is partitioned, each side has a leader of its own. If there must be only one, use
// package election.
//
//	m, err := group.New(&group.Options{ID: "host-1:7000", Peers: peers, Cluster: "cache", GetTLS: files.TLS})
//	...
//	defer m.Close()
//	err = m.Run(ctx, func(ctx context.Context, g group.Group) error {
//		return warm(ctx, g.Members) // until ctx ends
//	})
//
// It is for work that must go on in each part of a broken network: caches to warm, gossip to
// fan out, local queues to drain. The processes that reach each other are one group, and one
// of them leads it. When the network breaks, each part has a group of its own; when it is
// whole again, they merge. The algorithm is the invitation algorithm (Garcia-Molina, "Elections in
// a Distributed Computing System", IEEE Transactions on Computers C-31(1), 1982).
//
// The processes are those in a list ([Options].Peers, [Member.SetPeers]), or those of a roster, by
// which they find each other ([Member.SetRoster]).
//
// # Guarantees
//
// A group has a number, which is never used again. For each number the following holds, whatever the
// network does, however wrong clocks are, and whichever processes crash and start again:
//
//   - at most one process leads it;
//   - all processes that are in it agree on its leader and on its members;
//   - a process enters it once, and enters the next when its work as a leader has returned.
//
// Nothing holds between two numbers. They may lead at the same time, also for a moment while
// the network is whole: a leader that is paused or cut off works on until it knows. So a [Group]
// has no token, no guard and no term: it cannot refuse the writes of another leader.
//
// The members are trusted to follow the protocol. A process with a certificate of the
// authority can keep groups from forming, but not make two leaders of one number among the others.
// A process that is started twice with one ID does not connect with the others, logs that, and is a
// group of its own.
//
// # Time
//
// Nothing that is guaranteed depends on time. With the default [Options.Interval] a leader or
// member that is lost is missed after four seconds, and leaders look for other
// groups every five to seven and a half seconds. A merge calls off the work of each leader, and waits for the slowest
// up to [Options.Drain].
//
// # Cost
//
// A group of all n processes sends 2·(n−1) messages per Interval, and on each connection
// that is otherwise idle one heartbeat per second in each direction. docs/groups.md has
// the rest, and tells whether elections, zones or groups are what you need.
package group
