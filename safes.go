package election

import (
	"fmt"
	"strings"

	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/kv"
)

// The safes beside a leader's.
const (
	heirSuffix    = ":heir"    // the heir's signature
	requestSuffix = ":request" // a request to the leader
	holdSuffix    = ":hold"    // the hold that keeps the election closed beyond a term
)

// rosterMark is in the names of the safes of a roster; see kv.MemberName.
var rosterMark = kv.MemberName("", "") //nolint:gochecknoglobals // as a constant

func heirSafe(name string) string { return name + heirSuffix }

func requestSafe(name string) string { return name + requestSuffix }

func holdSafe(name string) string { return name + holdSuffix }

// checkName refuses names that cannot be used, or not without confusion.
func checkName(name string) error {
	if err := checkReserved(name); err != nil {
		return err
	}
	return checkText("name", name)
}

// checkReserved refuses names that are reserved for the safes beside an election's.
func checkReserved(name string) error {
	for _, suffix := range []string{heirSuffix, requestSuffix, holdSuffix} {
		if strings.HasSuffix(name, suffix) {
			return fmt.Errorf("election: name %q ends with %q, which is reserved for the records beside an election: use another name", name, suffix)
		}
	}
	if strings.Contains(name+":", rosterMark) { // of "a:roster", the heir would be where a member of "a" is
		return fmt.Errorf("election: name %q contains %q, or ends as that begins, which is reserved for the rosters of elections: use another name", name, rosterMark)
	}
	return nil
}

// safeOf returns what a safe is for, by its name.
func safeOf(name string) string {
	for _, suffix := range []string{heirSuffix, requestSuffix, holdSuffix} {
		if strings.HasSuffix(name, suffix) {
			return suffix[1:]
		}
	}
	if _, _, ok := kv.MemberOf(name); ok {
		return rosterName
	}
	return machine.Lead.String()
}

// beside returns the candidate with a safe beside the leader's as its safe.
func (c *Candidate) beside(name, what string) *Candidate {
	s := *c
	s.name, s.log = name, c.log.With("safe", what)
	return &s
}
