// Package paxoskv keeps safes among the candidates themselves, with no server: each
// member of a fixed list grants leases to all, and a majority of them decides. It is
// PaxosLease with the rules that were corrected since; docs/leases.md has the argument.
//
// # Guarantees
//
// At most one live record per safe, through crashes and restarts of members, partitions,
// and messages that are lost, late, repeated or out of order, as long as no member's
// clock runs faster or slower than real time by more than [Options].Drift. Nobody looks
// at the time of day for it: only spans of time are sent, and acceptors count by the
// slower of two clocks, one that stops while the host sleeps and one that does not.
// Reads are linearizable.
//
// A majority must be there. A leader that cannot reach one stops when its TTL is over; a
// record of a leader that died is over after its TTL, counted from its last refresh.
//
// Members keep leases in memory. One that has started grants nothing for a little
// longer than [Options].MaxTTL and a round, until all that it may have forgotten is
// over. When a majority restarts at once, nobody leads for so long, and a leader that
// was there stops. Options.Founding spares the very first start that wait.
//
// Tokens grow as long as a member of each majority remembers, or has a
// [Options].Dir: restarts one after the other do no harm without one. Without, and if a
// majority is restarted at once, they grow as the wall clock does.
//
// What breaks it: two processes that answer at one member's address in turn, with its
// certificate (the transport refuses the second as long as the first is there);
// Founding for a member whose Dir was lost; a list of members that is changed member by
// member. To change the list, stop all members, and start them with the new one: the
// quarantine keeps old leases and new ones apart. Members that disagree about the list
// or the other terms refuse each other.
//
// # Records
//
// A safe is a name in the members' memory; nothing else can write there, and no record
// is ever foreign. The token is the counter of the ballot that brought the signature
// in, the revision that of the last change. Both follow the wall clock in milliseconds
// where they can, and jump ahead by some seconds when a member with a Dir restarts.
//
// A name has at most 4 KiB; signature, value and note together 512 KiB. The TTL is
// 100 ms to MaxTTL, and exact but for the drift; after a write that reached a minority
// a record may live longer by up to [Store.Lifetime]'s difference.
//
// A write that a majority refused is taken back from the others. When its proposer
// vanishes on the way, what a minority has accepted stays in the way there for its TTL
// at most: an acceptor gives up a live lease for nobody but its owner. After a create
// or a refresh that matters only if another member is gone too; after a hand-over or a
// delete nobody may be able to read or to write the safe for so long.
//
// # Requirements
//
// Three or five members (15 at most), a port each that all others reach, and
// certificates: see [Options] and docs/peers.md. A client, without an ID, does all that
// a member does but vote and be told news.
//
// # Cost
//
// With n members, one's own acceptor counted: a read takes 2n messages in one round
// trip, a change 5n-1 in two, of which n-1 tell the others. A create looks first, and
// changes nothing where it finds a record. A read that finds a record expired writes
// that down before it says so, which is a change.
//
// A watch is told by whoever changes the safe. It looks when it begins, when the record
// should have expired, and every five seconds; a client's every second. A watch that no
// majority answers for five rounds ends with an error.
//
// With a Dir a member writes 16 bytes every ten seconds while it promises anything. A
// name that nobody uses is forgotten after a quarantine.
package paxoskv
