// Package lease is the protocol of leases that candidates grant each other: no
// store, no I/O, no goroutines, and no clock but the one that the caller reads.
//
// It is PaxosLease (Trencseni, Gazso, Reinhardt: "PaxosLease: Diskless Paxos for
// Leases", 2012) with the rules that "PaxosLease Revisited" (2026) corrects, made
// into a register that is changed by compare and swap: record 28 among the
// decisions in docs/adr has the argument.
package lease
