package trace_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/electkv/election"
	memkv "github.com/electkv/election/backends/mem"
	"github.com/electkv/election/internal/mistake"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/kv"
)

// What a runtime does that is not the core's.
func TestARuntimeThatDoesSomethingElseIsFound(t *testing.T) {
	bugs := map[string]struct {
		bend func(s, below kv.Store) kv.Store
		why  string
	}{
		"a refresh that nobody asked for": {func(s, _ kv.Store) kv.Store { return busy{s} }, "which the core has not asked for"},
		"a release that asks nobody":      {func(s, _ kv.Store) kv.Store { return idle{s} }, "the store was never asked"},
		"a longer lease than granted":     {func(s, _ kv.Store) kv.Store { return generous{s} }, "the store has granted"},
		"a loss that is not told":         {func(s, below kv.Store) kv.Store { return blind{s, below} }, `answered "stale"`},
	}
	for name, bug := range bugs {
		t.Run(name, func(t *testing.T) {
			p := newPlay()
			p.store = memkv.New() // the bugs wait in no line
			p.bend = func(s kv.Store) kv.Store { return bug.bend(s, p.store) }
			f := judge(p.resigned(t, election.Options{}))
			if f.Verdict != oracle.Broken || !strings.Contains(f.Detail, bug.why) {
				mistake.Missed(t, fmt.Sprintf("the trace is %s: %s", f.Verdict, f.Detail))
			}
		})
	}
}

type busy struct{ kv.Store }

func (s busy) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	if rec, err := s.Store.Refresh(ctx, name, rec); err != nil {
		return rec, err
	}
	return s.Store.Refresh(ctx, name, rec)
}

type idle struct{ kv.Store }

func (s idle) Delete(context.Context, string, kv.Record) error { return nil }

type generous struct{ kv.Store }

func (s generous) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	rec, err := s.Store.Refresh(ctx, name, rec)
	rec.TTL += time.Millisecond
	return rec, err
}

// blind has the record vanish before it is refreshed, and does not tell.
type blind struct {
	kv.Store
	below kv.Store
}

func (s blind) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	_ = s.below.Delete(ctx, name, rec)
	got, err := s.Store.Refresh(ctx, name, rec)
	if errors.Is(err, kv.ErrStale) {
		return rec, nil
	}
	return got, err
}
