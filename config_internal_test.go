package election

import (
	"testing"

	"github.com/stretchr/testify/require"

	memkv "github.com/electkv/election/backends/mem"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
)

// What a campaign is told about its store is what the types of the store say.
func TestACampaignKnowsWhatItsStoreCanDo(t *testing.T) {
	whole, line := memkv.New(), memkv.NewQueue()
	for _, c := range []struct {
		store        kv.Store
		steps, lines bool
	}{
		{whole, false, false}, {line, false, true},
		{struct{ kv.Store }{whole}, true, false}, {struct{ kv.Queue }{line}, true, true},
		{kvfault.Wrap(whole).Store, false, false}, {kvfault.Wrap(line).Store, false, true},
		{kvfault.Wrap(struct{ kv.Store }{whole}).Store, true, false}, {kvfault.Wrap(struct{ kv.Queue }{line}).Store, true, true},
		{history.Observe(whole, func(history.Event) {}), false, false}, {history.Observe(line, func(history.Event) {}), false, true},
	} {
		candidate, err := New(c.store, "jobs", nil)
		require.NoError(t, err)
		cfg := candidate.config(entry{})
		require.Equal(t, c.steps, cfg.Steps, "%T: a hand-over takes two steps", c.store)
		require.Equal(t, c.lines, cfg.Lines, "%T: it keeps lines", c.store)
	}
}
