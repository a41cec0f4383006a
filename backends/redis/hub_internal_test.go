package rediskv

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The last watch ends a subscription, and the next one does not wait for that.
func TestASubscriptionThatEndsTakesNothingFromTheNext(t *testing.T) {
	h := &hub{ears: make(map[string][]*sight)}
	begin := func() *listening {
		return &listening{fresh: make(map[string]struct{}), changed: make(chan struct{}, 1)}
	}
	old, next := begin(), begin()
	was, _ := h.all(old)
	is, _ := h.all(next)
	h.now = next
	h.join("key", &sight{})
	add, _ := h.changes(old, was)
	require.Empty(t, add)
	add, drop := h.changes(next, is)
	require.Equal(t, []string{"key"}, add)
	require.Empty(t, drop)
	add, drop = h.changes(next, is)
	require.Empty(t, add)
	require.Empty(t, drop)
}
