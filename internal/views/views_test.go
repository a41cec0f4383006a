package views_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	memkv "github.com/electkv/election/backends/mem"
	"github.com/electkv/election/internal/views"
	"github.com/electkv/election/kv"
)

// An able store has all parts, and tells which of them is asked.
type able struct {
	kv.Store
	told func(part string)
}

func (a able) Join(context.Context, string, kv.Record) (rec kv.Record, err error) {
	a.told("queue")
	return rec, err
}

func (a able) Stay(context.Context, string, kv.Record) (rec kv.Record, leads bool, err error) {
	return rec, leads, err
}

func (a able) HandOver(context.Context, string, kv.Record, string, kv.Record, string) (rec kv.Record, err error) {
	a.told("handover")
	return rec, err
}

func (a able) Vacate(context.Context, string, kv.Record, string) (rec kv.Record, err error) {
	a.told("vacate")
	return rec, err
}

func (a able) RefreshAll(context.Context, []kv.Held, func(int, kv.Record, error)) { a.told("batch") }

// each runs a test with each choice of parts.
func each(test func(choose func(views.Parts) views.Parts)) {
	for n := range 1 << 4 {
		test(func(p views.Parts) (some views.Parts) {
			if n&1 != 0 {
				some.Queue = p.Queue
			}
			if n&2 != 0 {
				some.HandOver = p.HandOver
			}
			if n&4 != 0 {
				some.Vacate = p.Vacate
			}
			if n&8 != 0 {
				some.Batch = p.Batch
			}
			return some
		})
	}
}

func TestAStoreHasThePartsThatItIsGivenAndNoOthers(t *testing.T) {
	each(func(choose func(views.Parts) views.Parts) {
		some := choose(views.Of(able{}))
		require.Equal(t, some.Has(), views.Of(some.With(memkv.New())).Has())
	})
}

func TestAViewHasThePartsOfItsStoreInItsOwnWayOrPastIt(t *testing.T) {
	ctx, asked := t.Context(), []string{}
	by := func(who string) able {
		return able{memkv.New(), func(part string) { asked = append(asked, who+" "+part) }}
	}
	each(func(choose func(views.Parts) views.Parts) {
		store, view := by("store"), by("view")
		some := choose(views.Of(store))
		require.Equal(t, some.Has(), views.Of(views.Over(some.With(store), view)).Has(), "what the store has not is not there")

		own := choose(views.Of(view))
		p := views.Of(views.Over(store, own.With(view)))
		asked = asked[:0]
		_, _ = p.Queue.Join(ctx, "safe", kv.Record{})
		_, _ = p.HandOver.HandOver(ctx, "safe", kv.Record{}, "place", kv.Record{}, "")
		_, _ = p.Vacate.Vacate(ctx, "safe", kv.Record{}, "place")
		p.Batch.RefreshAll(ctx, nil, nil)
		want := []string{"store queue", "store handover", "store vacate", "store batch"}
		for i, has := range own.Has() {
			if has {
				want[i] = "view" + want[i][len("store"):]
			}
		}
		require.Equal(t, want, asked)
	})
}
