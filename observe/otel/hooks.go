package electionotel

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/trace"

	"github.com/electkv/election"
	"github.com/electkv/election/kv"
)

func (t *Telemetry) campaignStart(ctx context.Context, i election.CampaignStartInfo) {
	caller := trace.SpanContextFromContext(ctx)
	_, span := t.start(ctx, "election.campaign", i.Candidate, i.Time)
	t.keep(i.HookInfo, &campaign{caller: caller, origin: span.SpanContext(), span: span})
}

func (t *Telemetry) campaignDone(ctx context.Context, i election.CampaignDoneInfo) {
	c := t.campaign(i.HookInfo)
	if c != nil && c.span != nil {
		ctx = trace.ContextWithSpan(ctx, c.span)
		defer c.span.End(trace.WithTimestamp(i.Time))
		tellCampaign(c.span, i)
		c.span = nil
	}
	if i.Token == 0 {
		t.over(i.HookInfo)
		return
	}
	t.counts.campaign.Record(ctx, i.Took.Seconds(), t.labels(i.HookInfo))
}

// tellCampaign says how a campaign has ended.
func tellCampaign(span trace.Span, i election.CampaignDoneInfo) {
	switch {
	case !span.IsRecording():
	case i.Err == nil:
		span.SetAttributes(outcomeKey.String(string(election.OutcomeOK)), tokenKey.Int64(signed(i.Token)))
	case errors.Is(i.Err, context.Canceled):
		span.SetAttributes(outcomeKey.String(string(election.OutcomeCancelled)))
	case errors.Is(i.Err, election.ErrHeld):
		span.SetAttributes(outcomeKey.String(string(election.OutcomeRefused)))
	default:
		fail(span, kindOf(i.Err), i.Err)
	}
}

func (t *Telemetry) termStart(ctx context.Context, i election.TermStartInfo) {
	t.counts.terms.Add(ctx, 1, t.labels(i.HookInfo))
}

func (t *Telemetry) refreshDone(ctx context.Context, i election.RefreshDoneInfo) {
	t.counts.refresh.Record(ctx, i.Took.Seconds(), t.labels(i.HookInfo, outcomeKey.String(string(i.Outcome))))
	if i.Outcome == election.OutcomeOK {
		t.counts.margin.Record(ctx, max(i.Left, 0).Seconds(), t.labels(i.HookInfo))
	}
}

func (t *Telemetry) termDone(ctx context.Context, i election.TermDoneInfo) {
	t.counts.ended.Add(ctx, 1, t.labels(i.HookInfo, reasonKey.String(string(i.Reason))))
	t.counts.term.Record(ctx, i.Took.Seconds(), t.labels(i.HookInfo))
	c := t.campaign(i.HookInfo)
	if c == nil { // its start was dropped
		c = &campaign{}
		t.keep(i.HookInfo, c)
	}
	c.end() // of the campaign, if CampaignDone was dropped
	_, c.span = t.start(ctx, "election.release", i.Candidate, i.Time, append(c.apart(),
		trace.WithAttributes(tokenKey.Int64(signed(i.Token)), reasonKey.String(string(i.Reason))))...)
	if errors.Is(i.Err, election.ErrLost) && c.span.IsRecording() {
		fail(c.span, string(i.Reason), i.Err)
	}
}

func (t *Telemetry) releaseDone(ctx context.Context, i election.ReleaseDoneInfo) {
	if c := t.campaign(i.HookInfo); c != nil && c.span != nil {
		ctx = trace.ContextWithSpan(ctx, c.span)
		defer c.span.End(trace.WithTimestamp(i.Time))
		tellRelease(c.span, i)
		c.span = nil
	}
	t.over(i.HookInfo)
	t.counts.drain.Record(ctx, i.Drain.Seconds(), t.labels(i.HookInfo))
}

// tellRelease says what became of the safe.
func tellRelease(span trace.Span, i election.ReleaseDoneInfo) {
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(releaseKey.String(string(i.Release)), drainKey.Float64(i.Drain.Seconds()))
	if i.Release == election.ReleaseHandedOver {
		span.SetName("election.hand_over")
		span.SetAttributes(heirKey.String(i.Heir), heirTokenKey.Int64(signed(i.HeirToken)))
	}
}

func (t *Telemetry) storeDone(ctx context.Context, i election.StoreDoneInfo) {
	at, opts := t.campaign(i.HookInfo).place(ctx, i.Op)
	ctx, span := t.start(at, "election.store."+string(i.Op), i.Candidate, i.Time.Add(-i.Took), append(opts,
		trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(operationKey.String(string(i.Op)), safeKey.String(i.Safe), outcomeKey.String(string(i.Outcome))))...)
	defer span.End(trace.WithTimestamp(i.Time))
	unclear := i.Outcome == election.OutcomeUnclear
	if span.IsRecording() && (unclear || errors.Is(i.Err, kv.ErrInvalid)) {
		fail(span, kindOf(i.Err), i.Err)
	}
	if unclear {
		t.counts.errors.Add(ctx, 1, t.labels(i.HookInfo, operationKey.String(string(i.Op))))
	}
}
