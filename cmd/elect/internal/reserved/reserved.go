// Package reserved knows the safes that stand beside an election's.
package reserved

import (
	"strings"

	"github.com/electkv/election/kv"
)

const (
	heir    = ":heir"
	request = ":request"
	hold    = ":hold"
)

// Heir returns the name of the heir's safe of an election.
func Heir(name string) string { return name + heir }

// Beside returns the names of the safes beside that of an election: its heir's, the
// one for requests to its leader, and the one that keeps it closed.
func Beside(name string) []string { return []string{name + heir, name + request, name + hold} }

// Election returns the election beside whose safe a name stands, and what for. It
// reports false if the name may be an election's own.
func Election(name string) (election, purpose string, ok bool) {
	if election, ok = strings.CutSuffix(name, heir); ok {
		return election, "the heir", true
	}
	if election, ok = strings.CutSuffix(name, request); ok {
		return election, "requests to the leader", true
	}
	if election, ok = strings.CutSuffix(name, hold); ok {
		return election, "the hold", true
	}
	if election, _, ok = kv.MemberOf(name); ok {
		return election, "a member of the roster", true
	}
	return "", "", false
}
