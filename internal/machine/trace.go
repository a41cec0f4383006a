package machine

import (
	"context"
	"slices"
)

// A Tracer takes down what campaigns do, so that it can be checked that the runtime does
// what Step decides, and gives it what has happened. Each step is taken down before its
// effects are carried out, while the campaign stands still: a tracer returns at once. It
// may be called by several campaigns at a time.
type Tracer interface {
	Begun(Beginning)
	Stepped(Move)
}

// A Beginning is how a campaign begins, as far as it can be written down.
type Beginning struct {
	Config Config // without its order
	Named  bool   // it has an order other than that in which candidates came
	Memory Memory
}

// A Move is one step of a campaign: what it was given, and what it asked for.
type Move struct {
	Nonce   string // of the campaign's config
	Now     Instant
	Event   Event
	Effects []Effect
}

type tracerKey struct{}

// WithTracer returns a context by which t takes down the campaigns that are begun under it.
func WithTracer(ctx context.Context, t Tracer) context.Context {
	return context.WithValue(ctx, tracerKey{}, t)
}

// A Trace takes down one campaign. A nil trace takes nothing down.
type Trace struct {
	tracer Tracer
	nonce  string
}

// Begin has the tracer of ctx take down how a campaign begins. It returns nil if there is
// no tracer.
func Begin(ctx context.Context, cfg *Config, memory Memory) *Trace {
	tracer, ok := ctx.Value(tracerKey{}).(Tracer)
	if !ok {
		return nil
	}
	b := Beginning{Config: *cfg, Named: cfg.Order != nil, Memory: memory}
	b.Config.Order = nil
	tracer.Begun(b)
	return &Trace{tracer, cfg.Nonce}
}

// Stepped takes down a step.
func (t *Trace) Stepped(now Instant, e *Event, effects []Effect) {
	if t != nil {
		t.tracer.Stepped(Move{Nonce: t.nonce, Now: now, Event: *e, Effects: slices.Clone(effects)})
	}
}
