package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// dateAndTime is how lines for people begin.
const dateAndTime = "2006-01-02 15:04:05.000"

// eventKey is of the attribute that names for programs what a record of package election
// tells of.
const eventKey = "event"

// newJSONHandler writes each record as one line of JSON, for programs: durations and
// errors as people would read them.
func newJSONHandler(out io.Writer, level slog.Level) slog.Handler {
	return slog.NewJSONHandler(out, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch v := a.Value.Resolve().Any().(type) {
		case error:
			a.Value = slog.StringValue(oneLine(v))
		case fmt.Stringer:
			if a.Value.Kind() != slog.KindTime && a.Key != slog.LevelKey {
				a.Value = slog.StringValue(v.String())
			}
		}
		return a
	}})
}

// A lineHandler writes log records for people: what happened first, then what it
// happened with.
//
//	elect: 2006-01-02 15:04:05.000 elected election=report id=host-17 token=4
type lineHandler struct {
	mu    *sync.Mutex
	out   io.Writer
	level slog.Level
	attrs string
	group string
}

func newLineHandler(out io.Writer, level slog.Level) *lineHandler {
	return &lineHandler{mu: &sync.Mutex{}, out: out, level: level}
}

// Enabled implements [slog.Handler].
func (h *lineHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

// Handle implements [slog.Handler].
func (h *lineHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString("elect: ")
	if !r.Time.IsZero() {
		b.WriteString(r.Time.Format(dateAndTime + " "))
	}
	if r.Level >= slog.LevelWarn {
		b.WriteString(strings.ToLower(r.Level.String()) + ": ")
	}
	b.WriteString(r.Message)
	b.WriteString(h.attrs)
	r.Attrs(func(a slog.Attr) bool {
		if a.Key != eventKey { // which the message says in words
			write(&b, h.group, a)
		}
		return true
	})
	b.WriteByte('\n')
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := io.WriteString(h.out, b.String())
	return err
}

// WithAttrs implements [slog.Handler].
func (h *lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	var b strings.Builder
	b.WriteString(h.attrs)
	for _, a := range attrs {
		write(&b, h.group, a)
	}
	next := *h
	next.attrs = b.String()
	return &next
}

// WithGroup implements [slog.Handler].
func (h *lineHandler) WithGroup(name string) slog.Handler {
	next := *h
	if name != "" {
		next.group += name + "."
	}
	return &next
}

func write(b *strings.Builder, group string, a slog.Attr) {
	value := a.Value.Resolve()
	switch {
	case a.Equal(slog.Attr{}):
	case value.Kind() == slog.KindGroup:
		if a.Key != "" {
			group += a.Key + "."
		}
		for _, inner := range value.Group() {
			write(b, group, inner)
		}
	default:
		fmt.Fprintf(b, " %s%s=%s", group, a.Key, quoted(value))
	}
}

// quoted quotes what could be taken for more than one word, or line.
func quoted(v slog.Value) string {
	if v.Kind() == slog.KindTime {
		return v.Time().Format(time.RFC3339Nano)
	}
	s := v.String()
	if err, ok := v.Any().(error); ok {
		s = oneLine(err)
	}
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == '"' || r == '=' || r == 0x7f }) {
		return fmt.Sprintf("%q", s)
	}
	return s
}
