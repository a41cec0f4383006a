package chronicle

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	memkv "github.com/electkv/election/backends/mem"
	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/kv"
)

func (c *Chronicle) names() []string {
	all := []string{}
	for _, e := range c.Report(0).Elections {
		all = append(all, e.Name)
	}
	return all
}

func TestWhatWasFoundIsForgottenWhenItIsVacantAndGoneForLong(t *testing.T) {
	store := memkv.New()
	_, err := store.Create(t.Context(), "led", kv.Record{Signature: "a/b", TTL: time.Hour})
	require.NoError(t, err)
	c := New(store)
	defer c.Close()
	c.Follow("named")
	c.found([]string{"gone", "led", "listed"}, false, nil)
	for r := c.Report(0); ; r = c.Report(0) {
		known := 0
		for _, e := range r.Elections {
			if len(e.Spells) > 0 {
				known++
			}
		}
		if known == 4 {
			break
		}
		<-r.Next
	}
	c.found([]string{"listed"}, false, nil)
	require.Equal(t, []string{"gone", "led", "listed", "named"}, c.names(), "it was vacant for a moment only")
	seq := c.Report(0).Seq
	require.False(t, c.Report(seq).All)
	c.drop([]string{"listed"}, boottime.Now())
	require.Equal(t, []string{"led", "listed", "named"}, c.names())
	require.True(t, c.Report(seq).All, "what has gone is told by all that is left")
}

func TestNoMoreElectionsAreFollowedThanAreLookedAfter(t *testing.T) {
	c := New(memkv.New())
	defer c.Close()
	names := []string{}
	for i := range Most + 1 {
		names = append(names, fmt.Sprint(i))
	}
	c.found(names[:Most], false, nil)
	require.False(t, c.Report(0).Search.Left)
	c.found(names, false, nil)
	require.Len(t, c.names(), Most)
	require.True(t, c.Report(0).Search.Left)
}
