//go:build linux

package faults

import (
	"slices"
	"strings"
)

// on returns for row.only that a row is about some stores, whoever judges expiry
// there.
func on(why string, stores ...string) func(column) string {
	return func(c column) string {
		if slices.Contains(stores, c.base()) {
			return ""
		}
		return why
	}
}

// overNetwork is for rows that spoil the network.
func overNetwork(c column) string {
	if c.nodes == 0 {
		return "there is no network between a process and its host's files"
	}
	return ""
}

// withServer is for rows that harm a server on which all depends.
func withServer(c column) string {
	if c.nodes == 0 {
		return "there is no server, only the kernel"
	}
	return ""
}

// allServers is for rows that harm the server, or all of them where one has
// replicas or shards.
func allServers(c column) string {
	if why := withServer(c); why != "" {
		return why
	}
	if c.nodes > 1 {
		return "its servers vote; see the loss of some of them"
	}
	return ""
}

// oneServer is for rows that harm the only server.
func oneServer(c column) string {
	if why := withServer(c); why != "" {
		return why
	}
	if c.nodes > 1 || strings.Contains(c.base(), "-") {
		return "there are several servers; see the loss of some of them"
	}
	return ""
}

// severalServers is for rows that harm some of several servers.
func severalServers(c column) string {
	if c.nodes < 3 {
		return "its servers do not vote"
	}
	return ""
}

// withLeader is for rows about the one of several servers that leads them. Where there
// is none, another row shows what is like it.
func withLeader(other string) func(column) string {
	return func(c column) string {
		if c.kind == kindPaxos {
			return "none of the members leads the others; see " + other
		}
		return ""
	}
}

// keepsRecords is for rows about servers that do not keep what they should.
func keepsRecords(c column) string {
	if c.kind == kindPaxos {
		return "members keep no records on a disk; see 11p and 51"
	}
	return ""
}

// holdsOthers is for rows about what other programs have put into the store.
func holdsOthers(c column) string {
	if c.kind == kindPaxos {
		return "no other program can write there"
	}
	return ""
}

// ownExpiry is for rows about how the store itself ends a record.
func ownExpiry(c column) string {
	if c.observed {
		return "no record has an expiry, a lease or a session where candidates judge"
	}
	return ""
}

// inOneStep is for rows about hand-overs that the store makes in one step.
func inOneStep(c column) string {
	if c.observed {
		return "hand-overs take two steps where candidates judge"
	}
	return on("hand-overs take two steps there", kindEtcd, kindConsul, "etcd3", "consul3", kindRedis, kindSentinel)(c)
}

// byCandidates is for rows about records that only candidates end.
func byCandidates(c column) string {
	if !c.observed {
		return "the store ends its records itself"
	}
	return ""
}

// keepsNoTable is for rows about the loss of all data.
func keepsNoTable(c column) string {
	if inTable(c.kind) {
		return "its table would be missing, without which nobody is elected"
	}
	return ""
}

// withClock is for rows that set the wall clock of a server.
func withClock(c column) string {
	if c.clock == nil {
		return "its server counts with a clock that nobody sets; several servers are like one"
	}
	return ""
}

// and is for rows that need all of it.
func and(conditions ...func(column) string) func(column) string {
	return func(c column) string {
		for _, condition := range conditions {
			if why := condition(c); why != "" {
				return why
			}
		}
		return ""
	}
}
