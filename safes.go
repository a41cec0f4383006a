package election

import (
	"fmt"
	"strings"

	"github.com/electkv/election/internal/machine"
)

// The safes beside a leader's.
const (
	heirSuffix    = ":heir"    // the heir's signature
	requestSuffix = ":request" // a request to the leader
	holdSuffix    = ":hold"    // the hold that keeps the election closed beyond a term
)

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
			return fmt.Errorf("election: name %q ends with %q, which is kept for what stands beside an election: use another", name, suffix)
		}
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
	return machine.Lead.String()
}

// beside returns the candidate with a safe beside the leader's as its safe.
func (c *Candidate) beside(name, what string) *Candidate {
	s := *c
	s.name, s.log = name, c.log.With("safe", what)
	return &s
}
