package election_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
)

func TestNewSaysWhatIsWrongAndWhatWouldBeRight(t *testing.T) {
	store := memkv.New()
	for _, c := range []struct {
		name string
		opts election.Options
		says string
	}{
		{"", election.Options{}, "name is empty"},
		{strings.Repeat("x", 513), election.Options{}, "name of 513 bytes is too long: at most 512"},
		{"a\xff", election.Options{}, `name "a\xff" is not valid UTF-8`},
		{"a\nb", election.Options{}, `name "a\nb" contains control characters`},
		{"a", election.Options{ID: "\x00"}, `ID "\x00" contains control characters`},
		{"a", election.Options{Value: strings.Repeat("x", 64<<10+1)}, "value of 65537 bytes is too long: at most 65536"},
		{"a", election.Options{TTL: -time.Second}, "TTL -1s is negative"},
		{"a", election.Options{TTL: time.Millisecond}, "use a TTL of at least 90ms"},
		{"a", election.Options{Margin: time.Millisecond}, "need at least 348ms"},
	} {
		_, err := election.New(store, c.name, &c.opts)
		require.ErrorContains(t, err, c.says)
	}
	_, err := election.New(nil, "a", nil)
	require.ErrorContains(t, err, "store is nil")
	_, err = election.New(coarse{store}, "a", nil)
	require.ErrorIs(t, err, kv.ErrInvalid, "a TTL that the store cannot honour")
	_, err = election.New(store, "naïve/名前 1", nil)
	require.NoError(t, err)
}

// traced is a wrapper as users write them.
type traced struct{ kv.Store }

func (s traced) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	return s.Store.Create(ctx, name, rec)
}

// A candidate that stands beside a line is not elected while others wait in it, and nothing
// would say why.
func TestAWrapperThatHidesThatCandidatesWaitInLineIsRefused(t *testing.T) {
	line := memkv.NewQueue()
	for _, hidden := range []kv.Store{traced{line}, &traced{line}, &line.Store, traced{kvfault.Wrap(line).Store}} {
		_, err := election.New(hidden, "jobs", nil)
		require.ErrorContains(t, err, fmt.Sprintf("%T hides that candidates", hidden))
		require.ErrorContains(t, err, "give it Join and Stay, or embed the store's own type")
	}
	for _, kept := range []kv.Store{traced{memkv.New()}, line, struct{ *memkv.Queue }{line}, struct{ kv.Queue }{line}, kvfault.Wrap(line).Store} {
		_, err := election.New(kept, "jobs", nil)
		require.NoError(t, err, "%T", kept)
	}
}

// coarse is a store with a floor under its TTLs.
type coarse struct{ *memkv.Store }

func (coarse) Lifetime(time.Duration) (kv.Lifetime, error) { return kv.Lifetime{}, kv.ErrInvalid }
