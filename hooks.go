package election

import (
	"context"
	"time"
)

// Hooks are functions that are told what candidates do, in the manner of package
// net/http/httptrace: to count it, to measure it, to draw it. Each may be nil, and what is
// not asked for costs nothing. Any number of candidates may share one Hooks. Hooks must not be
// copied or changed once a candidate has them. See [JoinHooks].
//
// The calls come one at a time, and for each candidate in the order in which things happened,
// on a goroutine of their own: a hook delays no refresh, no deadline and no work. Each call
// carries the time of what it tells of, because it may come later. Only the return of Run, TryRun,
// Resign, Transfer and Attend, and of a Campaign or TryCampaign that wins nothing, waits for calls,
// for a second at most; so a hook must not make these calls itself. If a hook blocks and thousands of calls wait, new ones are dropped:
// those of RefreshDone and StoreDone first. Dropped says how many.
//
// The context has the values of the context that was given to Run, Campaign, or the call
// that a request to the store was made for. It does not end.
//
// Structs that hooks get may gain fields, and the named strings values: treat one that you
// do not know as you would treat "other".
type Hooks struct {
	// RoleChange is called when the candidate's role changes. It is told what
	// Options.OnRole is, but the two are not called in any common order.
	RoleChange func(context.Context, RoleChangeInfo)

	// CampaignStart is called when a campaign begins, and CampaignDone when it has won a
	// term or is given up.
	CampaignStart func(context.Context, CampaignStartInfo)
	CampaignDone  func(context.Context, CampaignDoneInfo)

	// TermStart is called when a term begins, after CampaignDone. With Options.Hold that is
	// before the election is closed to others, and the work has not begun.
	TermStart func(context.Context, TermStartInfo)

	// RefreshDone is called when a refresh of a leader's lease has been answered, or was
	// given up. StoreDone is told the same.
	RefreshDone func(context.Context, RefreshDoneInfo)

	// TermDone is called when the lease is no longer trusted or was given up: the term's
	// work may still be about to stop.
	TermDone func(context.Context, TermDoneInfo)

	// ReleaseDone is called when the work has stopped, and nothing is left of the
	// term. It is not called for a term that is never resigned.
	ReleaseDone func(context.Context, ReleaseDoneInfo)

	// StoreDone is called when the store has answered a request, or it was given up, and
	// when a watch of the leader's safe or the heir's ends with an error. An operation of two
	// steps is told as one. Watches of other safes, the roster's listing, and functions that
	// belong to no candidate, such as Watch, tell nothing.
	StoreDone func(context.Context, StoreDoneInfo)

	// Dropped is called after calls of other hooks were dropped.
	Dropped func(context.Context, DroppedInfo)

	queue hookQueue
}

// A HookInfo is what all hooks are told.
type HookInfo struct {
	Candidate *Candidate
	Campaign  uint64    // tells the campaigns of a process apart; zero if none is known
	Time      time.Time // when it happened; for something that took time, when it ended
}

// A RoleChangeInfo is what Hooks.RoleChange is told.
type RoleChangeInfo struct {
	HookInfo
	From, To Role
}

// A CampaignStartInfo is what Hooks.CampaignStart is told.
type CampaignStartInfo struct {
	HookInfo
}

// A CampaignDoneInfo is what Hooks.CampaignDone is told.
type CampaignDoneInfo struct {
	HookInfo
	Took  time.Duration
	Token uint64 // of the term that was won; zero if there is none
	Err   error  // why there is none
}

// A TermStartInfo is what Hooks.TermStart is told.
type TermStartInfo struct {
	HookInfo
	Token uint64
}

// A RefreshDoneInfo is what Hooks.RefreshDone is told.
type RefreshDoneInfo struct {
	HookInfo
	Token   uint64
	Took    time.Duration // from the moment from which its trust counts
	Outcome Outcome
	Err     error

	// Left is for how long the lease could still be trusted when the answer came, not
	// counting what the answer adds. It is negative if the answer came too late.
	Left time.Duration
}

// A TermDoneInfo is what Hooks.TermDone is told.
type TermDoneInfo struct {
	HookInfo
	Token  uint64
	Took   time.Duration
	Reason Reason
	Err    error // the cause of the end of Term.Context
}

// A ReleaseDoneInfo is what Hooks.ReleaseDone is told.
type ReleaseDoneInfo struct {
	HookInfo
	Token  uint64
	Took   time.Duration // from when the work had stopped
	Reason Reason        // why the term had ended

	// Drain is how long the work went on after the end of its context. It is zero if the
	// work stopped first.
	Drain time.Duration

	Release   Release
	Heir      string // the ID of the candidate that was handed the safe; empty if none was
	HeirToken uint64 // of the term that was handed over
}

// A StoreDoneInfo is what Hooks.StoreDone is told.
type StoreDoneInfo struct {
	HookInfo
	Op      Op
	Safe    string        // "leader", "heir", "request", "hold" or "roster": what the request was about
	Took    time.Duration // zero for a watch
	Outcome Outcome
	Err     error
}

// A DroppedInfo is what Hooks.Dropped is told.
type DroppedInfo struct {
	Calls int // that were dropped since the last time
}

// A Reason is why a term has ended, in one word.
type Reason string

// The reasons.
const (
	ReasonExpired   Reason = "expired"   // the lease was not refreshed in time
	ReasonTaken     Reason = "taken"     // the record is gone, or another's
	ReasonUnhealthy Reason = "unhealthy" // the health check failed
	ReasonStopped   Reason = "stopped"   // the context of Run has ended
	ReasonFinished  Reason = "finished"  // lead has returned
	ReasonAsked     Reason = "asked"     // by RequestResign or RequestTransfer
	ReasonGaveWay   Reason = "gave_way"  // to an heir that comes before it, or after Options.MaxTerm
	ReasonResigned  Reason = "resigned"  // by Term.Resign or Term.Transfer, or nobody wanted the term any more
)

// An Outcome is what is known after a request to the store.
type Outcome string

// The outcomes.
const (
	OutcomeOK        Outcome = "ok"
	OutcomeRefused   Outcome = "refused"   // the store's answer was no: the safe is held, say
	OutcomeUnclear   Outcome = "unclear"   // there was no answer, or none that tells
	OutcomeCancelled Outcome = "cancelled" // it was no longer wanted
)

// A Release is what became of the safe after a term.
type Release string

// The ends of a release.
const (
	ReleaseFreed      Release = "freed"       // the safe is vacant
	ReleaseHandedOver Release = "handed_over" // the heir leads
	ReleaseMissing    Release = "missing"     // the record was gone already
	ReleaseLeft       Release = "left"        // a record may be left, and expires
)

// An Op is an operation of a store.
type Op string

// The operations. Displace and publish are swaps.
const (
	OpCreate   Op = "create"
	OpDisplace Op = "displace"
	OpPublish  Op = "publish"
	OpRefresh  Op = "refresh"
	OpHandOver Op = "hand_over"
	OpDelete   Op = "delete"
	OpVacate   Op = "vacate"
	OpGet      Op = "get"
	OpJoin     Op = "join"
	OpStay     Op = "stay"
	OpWatch    Op = "watch"
)

// JoinHooks returns hooks that call those of each of all, in that order. Those that are nil
// are left out. Each call of JoinHooks makes a goroutine for the calls of its own, so join once
// and give all candidates the result: Hooks that are given to some as they are, and to others
// joined, are called by more than one goroutine.
func JoinHooks(all ...*Hooks) *Hooks {
	joined := &Hooks{}
	for _, h := range all {
		if h == nil {
			continue
		}
		joined.RoleChange = both(joined.RoleChange, h.RoleChange)
		joined.CampaignStart = both(joined.CampaignStart, h.CampaignStart)
		joined.CampaignDone = both(joined.CampaignDone, h.CampaignDone)
		joined.TermStart = both(joined.TermStart, h.TermStart)
		joined.RefreshDone = both(joined.RefreshDone, h.RefreshDone)
		joined.TermDone = both(joined.TermDone, h.TermDone)
		joined.ReleaseDone = both(joined.ReleaseDone, h.ReleaseDone)
		joined.StoreDone = both(joined.StoreDone, h.StoreDone)
		joined.Dropped = both(joined.Dropped, h.Dropped)
	}
	return joined
}

// both returns a hook that calls two, of which each may be nil.
func both[I any](first, second func(context.Context, I)) func(context.Context, I) {
	switch {
	case first == nil:
		return second
	case second == nil:
		return first
	}
	return func(ctx context.Context, info I) {
		first(ctx, info)
		second(ctx, info)
	}
}
