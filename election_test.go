package election_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
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

// coarse is a store with a floor under its TTLs.
type coarse struct{ *memkv.Store }

func (coarse) Lifetime(time.Duration) (kv.Lifetime, error) { return kv.Lifetime{}, kv.ErrInvalid }
