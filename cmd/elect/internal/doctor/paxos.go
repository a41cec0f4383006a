package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	paxoskv "github.com/electkv/election/backends/paxos"
)

// paxos says how the cluster is, as the command that asks it sees it. That is a client:
// what a member keeps to itself is told by the URL, and by the member's own log.
func paxos(ctx context.Context, store *paxoskv.Store) []Finding {
	st := settled(ctx, store)
	return []Finding{
		quorum(st),
		reachable(st),
		{
			OK, "quarantine", fmt.Sprintf("a member that was restarted grants nothing for %v", st.QuarantineAfterStart.Round(time.Millisecond)),
			"it has forgotten what it granted; until then the others must be a majority without it",
			"restart members one after the other, and not faster than that",
		},
		{
			OK, "drift", fmt.Sprintf("clocks may run fast or slow by up to %d‰", st.Drift),
			"one that is further off could let a second leader be elected while the first still trusts its lease", "keep NTP or chrony running; nobody needs the right time",
		},
		{
			OK, "tokens", "grow as long as a majority runs on or keeps a dir; which members do is not seen from here",
			"if a majority is restarted at once without one, tokens go on from the wall clock", "see that each member's URL has a dir of its own, on a disk",
		},
	}
}

// settled returns how the cluster is once all members are reached, or two rounds later:
// a majority answers what was asked before the last one is connected.
func settled(ctx context.Context, store *paxoskv.Store) paxoskv.Status {
	ctx, cancel := context.WithTimeout(ctx, 2*store.Status().Round)
	defer cancel()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		st := store.Status()
		if st.Connected() == len(st.Members) {
			return st
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return st
		}
	}
}

func quorum(st paxoskv.Status) Finding {
	spare := len(st.Members) - st.Majority
	f := Finding{Level: OK, Subject: "quorum", Found: fmt.Sprintf("%d of %d members decide; elections go on without any %d", st.Majority, len(st.Members), spare)}
	switch {
	case spare == 0:
		f.Level, f.Why, f.Advice = Warn, "when one member is gone, nobody is elected", "use three members, or five"
	case len(st.Members)%2 == 0:
		f.Level, f.Why, f.Advice = Warn, "an even number bears no more failures than one less", "use an odd number of members"
	}
	return f
}

func reachable(st paxoskv.Status) Finding {
	f := Finding{Level: OK, Subject: "members", Found: fmt.Sprintf("all %d are reached", len(st.Members))}
	away := []string{}
	for _, m := range st.Members {
		if m.Trouble != nil {
			away = append(away, fmt.Sprintf("%s: %v", m.ID, m.Trouble))
		}
	}
	if len(away) > 0 {
		f.Level, f.Found = Warn, fmt.Sprintf("%d of %d are reached; %s", st.Connected(), len(st.Members), strings.Join(away, "; "))
		f.Why = fmt.Sprintf("elections go on as long as %d are", st.Majority)
		f.Advice = "start them, or let this host reach them"
	}
	return f
}
