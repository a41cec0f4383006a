package etcdkv_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

// A restart of the server is over before any term is. The messages are all that the client sends
// until each term has been refreshed: its two watches are opened again, and there is room for a
// refresh by itself and for a look.
func TestAThousandTermsOutliveARestartOfTheirServerWithoutAStorm(t *testing.T) {
	testenv.Long(t)
	const many, ttl, each = 1000, 40 * time.Second, 12
	server := testenv.StartEtcd(t)
	var sent count
	r := reigning(t, open(t, &sent, server.Addr()), ttl, many)
	before, _ := r.await(t, patience)
	quiet := sent.Load()
	server.Restart()
	back := time.Now()
	r.awaitRefresh(t, before, ttl+patience, back.Add(ttl*9/10))
	messages := sent.Load() - quiet
	t.Logf("all were refreshed after %v and %d messages", time.Since(back), messages)
	require.Less(t, messages, int64(each*many))
	now, _ := r.await(t, patience)
	require.True(t, slices.Equal(before, now))
}
