package election

import (
	"context"
	"log/slog"
)

// Each record has an attribute "event", by which programs know what it tells of: the message
// is for people, and may change. docs/observability.md lists them.

// A postedHandler is a log handler that never blocks its caller.
type postedHandler struct {
	slog.Handler
	out *outbox
}

// newLog returns a logger that passes its records on to another through an outbox. Records
// that are discarded anyway do not go through it.
func newLog(logger *slog.Logger, out *outbox) *slog.Logger {
	if logger.Handler() == slog.DiscardHandler {
		return logger
	}
	return slog.New(postedHandler{logger.Handler(), out})
}

// Enabled implements [slog.Handler]. The user's handler is asked when its turn comes.
func (h postedHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements [slog.Handler].
func (h postedHandler) Handle(ctx context.Context, r slog.Record) error {
	ctx, r = context.WithoutCancel(ctx), r.Clone()
	h.out.post(func() {
		if n := h.out.lost(); n > 0 {
			missing := slog.NewRecord(r.Time, slog.LevelWarn, "log records were dropped: the handler is too slow", 0)
			missing.AddAttrs(slog.String("event", "log_dropped"), slog.Int("records", n))
			h.pass(ctx, missing)
		}
		h.pass(ctx, r)
	})
	return nil
}

func (h postedHandler) pass(ctx context.Context, r slog.Record) {
	if h.Handler.Enabled(ctx, r.Level) {
		_ = h.Handler.Handle(ctx, r) // as slog.Logger does: there is nobody to tell
	}
}

// WithAttrs implements [slog.Handler].
func (h postedHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return postedHandler{h.Handler.WithAttrs(attrs), h.out}
}

// WithGroup implements [slog.Handler].
func (h postedHandler) WithGroup(name string) slog.Handler {
	return postedHandler{h.Handler.WithGroup(name), h.out}
}
