package electionotel

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/electkv/election"
	"github.com/electkv/election/kv"
)

// start begins a span of a candidate, at a time.
func (t *Telemetry) start(ctx context.Context, name string, of *election.Candidate, at time.Time,
	opts ...trace.SpanStartOption,
) (context.Context, trace.Span) {
	return t.tracer.Start(ctx, name, append(opts, trace.WithTimestamp(at),
		trace.WithAttributes(nameKey.String(of.Name()), candidateKey.String(of.ID())))...)
}

// apart makes a span the root of a trace of its own, with a link to its campaign.
func (c *campaign) apart() []trace.SpanStartOption {
	opts := []trace.SpanStartOption{trace.WithNewRoot()}
	if c.origin.IsSampled() {
		opts = append(opts, trace.WithLinks(trace.Link{SpanContext: c.origin}))
	}
	return opts
}

// place says where the span of a request belongs.
func (c *campaign) place(ctx context.Context, op election.Op) (context.Context, []trace.SpanStartOption) {
	own := trace.SpanContextFromContext(ctx)
	switch {
	case c == nil:
		return ctx, nil
	case op == election.OpRefresh || op == election.OpStay: // for weeks, also an heir's
		return ctx, c.apart()
	case c.span != nil:
		return trace.ContextWithSpan(ctx, c.span), nil
	case own.IsValid() && !own.Equal(c.caller): // of a call, such as Term.Transfer
		return ctx, nil
	}
	return ctx, c.apart()
}

// fail says that what a span stands for has failed.
func fail(span trace.Span, kind string, err error) {
	span.SetStatus(codes.Error, err.Error())
	span.SetAttributes(errorKey.String(kind))
}

// kindOf returns what kind of error it is, in one word.
func kindOf(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, kv.ErrInvalid):
		return "invalid"
	}
	return "_OTHER"
}
