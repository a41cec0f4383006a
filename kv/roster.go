package kv

import (
	"context"
	"strings"
)

// A Roster is a [Store] that lists records which stand side by side under one name, each in a
// safe of its own: those of the members of a roster. [MemberName] makes the names of these
// safes. They are safes like any other: Create, Refresh, RefreshAll, Delete, Get and Watch do
// for them what they do for others, and their records may be Shared.
//
// In addition, a new record gets a token that is larger than that of every earlier record of
// the same roster, whichever member's it was, across deletes, expiries and restarts.
type Roster interface {
	Store

	// Members returns the live records of the roster called name, in no particular order, each
	// with the name of its safe. The result has every record whose Create returned before the call
	// and that lives until the end of the call. It has none that was gone before the call. If
	// there are more than most, it returns no more than most of them.
	//
	// A record that this library did not write is reported as foreign, and left alone. Of its
	// value, Members may return only the beginning, at least 256 bytes.
	//
	// Version stands for what it has seen, for AwaitMembers.
	Members(ctx context.Context, name string, most int) (members []Held, version uint64, err error)

	// AwaitMembers returns nil when the roster may have changed since Members has returned
	// version: soon after a change where the store can push, and after a pause in any case
	// where it cannot. It may return without a change, but it never spins. When ctx ends, it
	// returns an error that reports ctx's error or cause. A refresh is not a change.
	AwaitMembers(ctx context.Context, name string, version uint64) error
}

// memberMark is between the name of a roster and the key of a member.
const memberMark = ":roster:"

// longestMemberKey is the length, in bytes, of the longest key of a member.
const longestMemberKey = 64

// MemberName returns the name of a member's safe. Key is the member's own: up to 64 letters
// and digits of ASCII, and hyphens. Use a new one for each record: a store may keep something
// for each that was ever used, until it is cleared.
func MemberName(roster, key string) string { return roster + memberMark + key }

// MemberOf splits the name of a member's safe into the roster's name and the member's key. It
// reports false for a name that MemberName does not make.
func MemberOf(name string) (roster, key string, ok bool) {
	at := strings.LastIndex(name, memberMark)
	if at <= 0 {
		return "", "", false
	}
	roster, key = name[:at], name[at+len(memberMark):]
	if key == "" || len(key) > longestMemberKey || strings.ContainsFunc(key, noMemberKey) {
		return "", "", false
	}
	return roster, key, true
}

func noMemberKey(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-'
}
