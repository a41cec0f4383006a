package electionprom

import (
	"context"

	"github.com/electkv/election"
)

// newHooks returns hooks that count. What happened to whom is told by the label alone.
func (m *Metrics) newHooks() *election.Hooks {
	return &election.Hooks{
		CampaignStart: func(_ context.Context, i election.CampaignStartInfo) {
			m.label(i.HookInfo)
			m.known.enter(i.HookInfo)
		},
		CampaignDone: func(_ context.Context, i election.CampaignDoneInfo) {
			label := m.label(i.HookInfo)
			if i.Token == 0 {
				m.known.leave(i.HookInfo)
				return
			}
			m.counts.campaign.WithLabelValues(label).Observe(i.Took.Seconds())
		},
		TermStart: func(_ context.Context, i election.TermStartInfo) {
			m.counts.terms.WithLabelValues(m.label(i.HookInfo)).Inc()
			m.known.enter(i.HookInfo)
		},
		RefreshDone: func(_ context.Context, i election.RefreshDoneInfo) {
			label := m.label(i.HookInfo)
			m.counts.refreshes.WithLabelValues(label, string(i.Outcome)).Observe(i.Took.Seconds())
			if i.Outcome == election.OutcomeOK {
				m.counts.margin.WithLabelValues(label).Observe(i.Left.Seconds())
			}
		},
		TermDone: func(_ context.Context, i election.TermDoneInfo) {
			label := m.label(i.HookInfo)
			m.counts.ended.WithLabelValues(label, string(i.Reason)).Inc()
			m.counts.term.WithLabelValues(label).Observe(i.Took.Seconds())
			m.known.leave(i.HookInfo)
		},
		ReleaseDone: func(_ context.Context, i election.ReleaseDoneInfo) {
			label := m.label(i.HookInfo)
			m.counts.drain.WithLabelValues(label).Observe(i.Drain.Seconds())
			if i.Drain > i.Candidate.Margin() {
				m.counts.overruns.WithLabelValues(label, string(i.Reason)).Inc()
			}
		},
		StoreDone: func(_ context.Context, i election.StoreDoneInfo) {
			if i.Outcome == election.OutcomeUnclear {
				m.counts.errors.WithLabelValues(m.label(i.HookInfo), string(i.Op)).Inc()
			}
		},
		Dropped: func(_ context.Context, i election.DroppedInfo) {
			m.counts.dropped.Add(float64(i.Calls))
			m.known.sweep()
		},
	}
}

// label returns the value of the label "election" for what happened, and makes its series if it
// is new.
func (m *Metrics) label(i election.HookInfo) string {
	label, first := m.known.label(i.Candidate)
	if first {
		m.counts.begin(label)
	}
	return label
}
