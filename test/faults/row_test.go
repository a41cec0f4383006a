//go:build linux

package faults

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/internal/trace"
)

// A row is a fault, and what an election has to do about it.
type row struct {
	number int    // in the table of docs/reliability.md
	letter string // tells rows of one number apart: "a", "b"
	fault  string // what goes wrong, in a few words

	short bool // part of the short choice
	alone bool // nothing else runs meanwhile
	own   bool // it does harm to the servers, and needs its own

	// only returns why the row does not apply to a store, or "" if it does; nil:
	// it applies to all.
	only func(c column) (why string)

	candidates int                                   // 3 if zero
	cast       []string                              // their names, if they are not the usual ones
	times      int                                   // the TTL is so many times the store's shortest; 1 if zero
	servers    func(t testing.TB, c column) *servers // starts servers of its own with other settings than the column's
	part       func(p *part)                         // changes what each candidate is told
	// prepare changes the command of a candidate's process before it starts: to
	// run it on a host of its own, say.
	prepare  func(s *stage, who string, cmd *exec.Cmd)
	requests int // how many a candidate may send within a TTL, if that is not the usual number

	// asked tells the candidates that are asked over HTTP; nil: all of them.
	asked func(who string) bool

	// must are the rules that have to speak, beside those of every row: the fault
	// is there to show that they are kept.
	must []oracle.Rule
	// silent are rules of every row about which this one shows nothing.
	silent []oracle.Rule
	// red are the rules that must be broken, since something is missing that the
	// store needs: without says what. Another row shows it green with it.
	red     []oracle.Rule
	without string
	// with is that, in the same words, in the row that shows it.
	with string

	// may are rules that the store may break by its nature, whatever a candidate
	// does, and breaks by luck: because says how. Kept or broken, the row is as
	// expected, and it is never published as a plain yes. They have to speak, and
	// the fence has to hold.
	may     []oracle.Rule
	because string

	// observed changes the row where candidates judge expiry, if it is another there.
	observed func(r *row)

	// peers changes the row where members keep the store, if it is another there.
	peers func(r *row)

	// bug is planted in every candidate; see plant. The rules in red find it.
	bug     string
	control bool // it shows a bug's play without the bug, and is no row of the table

	play func(s *stage)
}

// always are the rules that each row must show to be kept.
func always() []oracle.Rule {
	return []oracle.Rule{
		oracle.OneLeader, oracle.DeadlineFromSend, oracle.TokensGrow, oracle.FenceHolds,
		oracle.WorkWithinTerm, oracle.CallbacksPaired, oracle.ReleasedMeansStopped,
		oracle.NothingLeft, oracle.RequestsBounded, trace.Followed,
		oracle.AnswersInTime, oracle.ScrapesInTime, trueAlarms,
	}
}

// usual is how many requests a candidate may send within a TTL. Where nothing
// answers, its watches of two safes and its claims, or its refreshes, are tried again at
// pauses that double from a fiftieth to a third of the TTL, less up to a half: ten times
// each, at most. A leader proclaims four times, and may have to look then.
const usual = 48

// in returns the row as it is in a column.
func (r row) in(c column) row {
	if c.observed && r.observed != nil {
		r.observed(&r)
	}
	if c.kind == kindPaxos && r.peers != nil {
		r.peers(&r)
	}
	return r
}

// ttl returns the row's TTL on a store.
func (r row) ttl(c column) time.Duration { return c.ttl * time.Duration(max(r.times, 1)) }

// id returns the row's number and letter.
func (r row) id() string { return fmt.Sprintf("%02d%s", r.number, r.letter) }

// expected says what the row expects.
func (r row) expected() string {
	if len(r.red) > 0 {
		return "red without " + r.without
	}
	if len(r.may) > 0 {
		return "may be red: " + r.because
	}
	if r.with != "" {
		return "green with " + r.with
	}
	return "green"
}
