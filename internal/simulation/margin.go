package simulation

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/internal/seam"
	"github.com/electkv/election/internal/sim"
)

// silence is the schedule that attains the bound on the margin: the leader's
// clock is slow by ρ and the store's is fast by ρ, messages take no time, no candidate
// hesitates, and after some refreshes the leader's messages are lost.
func silence(ttl, margin time.Duration, rho sim.PPM, refreshes int) sim.Schedule {
	refresh := float64(ttl-margin) / 3 / (1 - float64(rho)/1e6)
	from := time.Duration((float64(refreshes) + 0.5) * refresh)
	return sim.Schedule{
		TTL: ttl, Margin: margin, Horizon: from + 2*ttl,
		Store:  sim.StorePlan{Rate: rho},
		Nodes:  []sim.NodePlan{{Style: sim.ByRun, Rate: -rho}, {Style: sim.ByRun}},
		Faults: []sim.Fault{{Kind: sim.CutRequests, Who: 0, Window: sim.Window{From: from, To: from + 3*ttl/2}}},
	}
}

// observedSilence is the same where the waiting candidate judges, and its clock is fast. It
// joins after the first record, and sees the next as soon as it is there.
func observedSilence(ttl, margin time.Duration, rho sim.PPM, refreshes int) sim.Schedule {
	s := silence(ttl, margin, rho, refreshes+1)
	Observed(&s)
	s.Store.Rate, s.Nodes[1].Rate = 0, rho
	return s
}

// silences are the worst schedules for each way to judge expiry.
var silences = map[string]func(ttl, margin time.Duration, rho sim.PPM, refreshes int) sim.Schedule{
	"the store": silence, "an observer": observedSilence,
}

// lastsFor runs a schedule in which work goes on for w after its term has ended.
func lastsFor(t *testing.T, engine seam.Engine, s sim.Schedule, w time.Duration) (h history.History) {
	synctest.Test(t, func(t *testing.T) {
		h = sim.Run(s, func(node *sim.Node) sim.Engine {
			n := &Node{node, engine}
			c, err := n.Candidate(n.Store, s.Margin)
			require.NoError(t, err)
			engine.SetJitter(c, func(time.Duration) time.Duration { return 0 })
			return func(ctx context.Context) error {
				return c.Run(ctx, func(ctx context.Context, term *election.Term) error {
					leading := n.Term(term)
					n.Begin(leading)
					n.Work(ctx, leading)
					time.Sleep(w)
					n.Finish(leading, context.Cause(ctx))
					return nil
				})
			}
		})
	})
	h.Margin = s.Margin
	terms := h.Stretches()
	require.GreaterOrEqual(t, len(terms), 2)
	require.Equal(t, "a", terms[0].Who)
	require.Equal(t, "b", terms[1].Who)
	return h
}

// TightMargin shows that the bound of the package documentation is tight, for work that stops at once:
// G = T·2ρ/(1+ρ). A microsecond more and there is one leader at a time; a
// microsecond less and there are two.
func TightMargin(t *testing.T, engine seam.Engine) {
	const least = time.Microsecond
	for who, silence := range silences {
		for _, ttl := range []time.Duration{time.Second, 3 * time.Second, 15 * time.Second, time.Minute} {
			for _, rho := range []sim.PPM{50_000, 75_000, 100_000, 150_000, 200_000} {
				r := float64(rho) / 1e6
				bound := time.Duration(float64(ttl) * 2 * r / (1 + r))
				for refreshes := range 3 {
					h := lastsFor(t, engine, silence(ttl, bound+least, rho, refreshes), 0)
					require.Equal(t, oracle.Kept, oracle.Judge(h, oracle.OneLeader)[0].Verdict, "%s judges, TTL %v, ρ %v, margin %v", who, ttl, r, bound+least)
					h = lastsFor(t, engine, silence(ttl, bound-least, rho, refreshes), 0)
					require.Equal(t, oracle.Broken, oracle.Judge(h, oracle.OneLeader)[0].Verdict, "%s judges, TTL %v, ρ %v, margin %v", who, ttl, r, bound-least)
				}
			}
		}
	}
}

// LeastMargin shows what the least margin that New takes is good for, at the drift that it assumes, for work that
// stops W later: G = T·2ρ/(1+ρ) + W, rounded up to a millisecond.
func LeastMargin(t *testing.T, engine seam.Engine) {
	const w = 50 * time.Millisecond
	for who, silence := range silences {
		for _, ttl := range []time.Duration{time.Second, 3 * time.Second, 15 * time.Second, time.Minute} {
			margin := (time.Duration(float64(ttl)*0.02/1.01) + w + time.Millisecond - 1).Truncate(time.Millisecond)
			for refreshes := range 3 {
				s := silence(ttl, margin, simRho, refreshes)
				require.LessOrEqual(t, stoppedAfterNext(lastsFor(t, engine, s, w)), time.Duration(0), "%s judges, TTL %v, margin %v", who, ttl, margin)
				require.Positive(t, stoppedAfterNext(lastsFor(t, engine, s, w+2*time.Millisecond)), "%s judges, TTL %v, margin %v", who, ttl, margin)
			}
		}
	}
}

// stoppedAfterNext returns how long after the second leader's election the first
// one's work stopped.
func stoppedAfterNext(h history.History) time.Duration {
	return h.Of("a", history.Finished)[0].At - h.Of("b", history.Elected)[0].At
}
