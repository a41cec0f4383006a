// Package paxoskv keeps safes among the candidates themselves, with no server: each
// member of a fixed list grants leases to all, and a majority of them decides. It is
// PaxosLease with the rules that were corrected since; docs/leases.md has the argument.
// Choose it where there is no store at all, and three or five hosts reach each other.
//
//	files := &paxoskv.Files{Cert: "host-1.pem", CA: "ca.pem"}
//	store, err := paxoskv.New(&paxoskv.Options{
//		ID:      "host-1:7000", // the others have another ID, certificate and Dir
//		Peers:   []string{"host-1:7000", "host-2:7000", "host-3:7000"},
//		Cluster: "billing",
//		GetTLS:  files.TLS,
//		Dir:     "/var/lib/billing/election",
//	})
//	if err != nil {
//		return err
//	}
//	defer store.Close()
//	candidate, err := election.New(store, "billing", nil)
//	if err != nil {
//		return err
//	}
//	return candidate.Run(ctx, bill) // func(context.Context, *election.Term) error
//
// # Guarantees
//
// At most one live record per safe, through crashes and restarts of members, partitions,
// and messages that are lost, late, repeated or out of order, as long as no member's
// clock runs faster or slower than real time by more than [Options].Drift. The time of
// day does not matter: members send only spans of time, and acceptors count by the
// slower of two clocks, one that stops while the host sleeps and one that does not.
// Reads are linearizable.
//
// A majority must be there. A leader that cannot reach one stops a margin before its
// TTL is over. The record of a leader that died is over after its TTL and 1 % (twice
// the drift), counted from its last refresh. After a write that was cut off it may live
// for up to seven rounds more ([Options].Round).
//
// Members keep leases in memory. A member that has just started is in quarantine: it
// grants nothing for a little longer than [Options].MaxTTL and a round, until every
// lease that it may have forgotten is over. If a majority restarts at the same time, nobody
// leads for that long, and the leader stops. Options.Founding skips that wait at the very
// first start.
//
// Tokens grow as long as a member of each majority remembers them, or has a
// [Options].Dir. Without a Dir, restarts one after the other do no harm; if a majority
// restarts at the same time, tokens grow as the wall clock does.
//
// Three things break it: two processes that answer at one member's address in turn,
// with its certificate (the transport refuses the second as long as the first is there);
// Founding for a member whose Dir was lost; and a list of members that is changed member
// by member. To change the list, stop all members, and start them with the new one: the
// quarantine keeps old leases and new ones apart. Members that disagree about the list
// or the other terms refuse each other.
//
// # Records
//
// A safe is a name in the members' memory. No other program can write there, so no
// record is ever foreign. The token is the counter of the ballot that brought the
// signature in; the revision is that of the last change. Both follow the wall clock in
// milliseconds where they can, and jump ahead by some seconds when a member with a Dir
// restarts.
//
// A name has at most 4 KiB; signature, value and note together 512 KiB. The TTL is
// 100 ms to MaxTTL, and exact, except for the drift. After a write that reached a minority,
// a record may live longer by up to [Store.Lifetime]'s difference.
//
// A write that a majority refused is taken back from the other members. If its proposer
// vanishes before that, what a minority has accepted blocks those members for its TTL at
// most, since an acceptor gives up a live lease only for the lease's owner. After a create
// or a refresh that matters only if another member is gone too. After a hand-over or a
// delete, it may be that nobody can read or write the safe for that long.
//
// # Requirements
//
// Three or five members (15 at most), each with a port that all others reach, and
// certificates: see [Options], [Files] and docs/peers.md. A client has no ID. It does all that a
// member does, but it has no vote, and the members do not tell it of changes.
//
// # Cost
//
// With n members, counting one's own acceptor, a read takes 2n messages in one round
// trip. A change takes 5n-1 in two, of which n-1 tell the others. A create reads first,
// and changes nothing if it finds a record. A read that finds an expired record writes
// that down before it says so, which is a change.
//
// The member that changes the safe tells the watches. A watch also reads the safe when
// it begins, when the record should have expired, and every five seconds; in a client,
// every second. A watch that no majority answers for five rounds ends with an error.
//
// With a Dir, a member writes 16 bytes every ten seconds while it promises anything. A
// name that nobody uses is forgotten after a quarantine.
package paxoskv
