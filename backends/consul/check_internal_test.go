package consulkv

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/gate"
)

// A clerk answers transactions as Consul does: it carries none out of which it denies an
// operation, and names of the others those whose condition does not hold.
type clerk struct {
	denied, changed []string

	mu   sync.Mutex
	txns [][]string // the keys of each
}

func (c *clerk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var ops api.TxnOps
	_ = json.NewDecoder(r.Body).Decode(&ops)
	var answer api.TxnResponse
	var keys []string
	for _, bad := range [][]string{c.denied, c.changed} {
		for i, op := range ops {
			if slices.Contains(bad, op.KV.Key) {
				answer.Errors = append(answer.Errors, &api.TxnError{OpIndex: i, What: "no"})
			}
		}
		if answer.Errors != nil {
			w.WriteHeader(http.StatusConflict)
			break
		}
	}
	for _, op := range ops {
		keys = append(keys, op.KV.Key)
		answer.Results = append(answer.Results, &api.TxnResult{KV: &api.KVPair{Key: op.KV.Key, ModifyIndex: 7}})
	}
	c.mu.Lock()
	c.txns = append(c.txns, keys)
	c.mu.Unlock()
	_ = json.NewEncoder(w).Encode(answer)
}

// begin returns a client of the clerk.
func (c *clerk) begin(t *testing.T) (*connections, *api.Client) {
	t.Helper()
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	client, err := api.NewClient(&api.Config{Address: server.URL})
	require.NoError(t, err)
	conns := connectionsOf(client)
	conns.turn = gate.Fixed(1) // which a slow test can hold
	return conns, client
}

// looks has each key looked at, at once, and returns what is told to be unchanged.
func looks(t *testing.T, conns *connections, client *api.Client, keys ...string) (same []string) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	leave, err := conns.turn.Enter(t.Context()) // until all have come
	require.NoError(t, err)
	for _, key := range keys {
		all.Go(func() {
			kept, err := conns.unchanged(t.Context(), client, []*api.KVTxnOp{at(key, 7)})
			mu.Lock()
			defer mu.Unlock()
			if err == nil && kept {
				same = append(same, key)
			}
		})
	}
	require.Eventually(t, func() bool {
		conns.mu.Lock()
		defer conns.mu.Unlock()
		k := conns.open[forChanges]
		return k != nil && k.watches == len(keys)
	}, time.Minute, time.Millisecond)
	leave()
	all.Wait()
	slices.Sort(same)
	return same
}

func TestManyKeysAreLookedAtInOneTransaction(t *testing.T) {
	c := &clerk{}
	conns, client := c.begin(t)
	require.Equal(t, []string{"a", "b", "c"}, looks(t, conns, client, "a", "b", "c"))
	require.Len(t, c.txns, 1)
}

// A server takes so many bytes.
func TestLongKeysAreLookedAtInSeveralTransactions(t *testing.T) {
	c := &clerk{}
	conns, client := c.begin(t)
	leave, err := conns.turn.Enter(t.Context())
	require.NoError(t, err)
	const n = 40
	var all sync.WaitGroup
	for i := range n {
		key := fmt.Sprintf("%0*d", longestKey, i)
		all.Go(func() {
			same, err := conns.unchanged(t.Context(), client, []*api.KVTxnOp{at(key, 7)})
			assert.True(t, same, "%v", err)
		})
	}
	time.Sleep(100 * time.Millisecond) // most have come
	leave()
	all.Wait()
	looked := 0
	for _, keys := range c.txns {
		require.LessOrEqual(t, len(keys), longestTxn/(escaped*longestKey))
		looked += len(keys)
	}
	require.Equal(t, n, looked)
}

func TestAKeyThatHasChangedOrIsDeniedHidesNoOther(t *testing.T) {
	c := &clerk{denied: []string{"b"}, changed: []string{"c"}}
	conns, client := c.begin(t)
	require.Equal(t, []string{"a", "d"}, looks(t, conns, client, "a", "b", "c", "d"))
	require.Len(t, c.txns, 3)
}

func TestNobodyWaitsForACheckOnceAllHaveLeft(t *testing.T) {
	c := &clerk{}
	conns, client := c.begin(t)
	leave, err := conns.turn.Enter(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for _, key := range []string{"a", "b"} {
		all.Go(func() {
			_, err := conns.unchanged(ctx, client, []*api.KVTxnOp{at(key, 7)})
			assert.ErrorIs(t, err, context.Canceled)
		})
	}
	time.Sleep(time.Millisecond)
	cancel()
	all.Wait()
	leave()
	require.Empty(t, c.txns)
	require.Nil(t, conns.open[forChanges])
	require.Equal(t, []string{"c"}, looks(t, conns, client, "c"))
}

func TestManyKeysAreReadInOneTransaction(t *testing.T) {
	c := &clerk{}
	conns, client := c.begin(t)
	found, err := conns.readTogether(t.Context(), client, "a", "b")
	require.NoError(t, err)
	require.Len(t, found, 2)
	require.Equal(t, "b", found[1].Key)
	c.denied = []string{"c"}
	found, err = conns.readTogether(t.Context(), client, "c")
	require.NoError(t, err)
	require.Nil(t, found)
}

// It is a look at the key, if the key is as the watch knows it.
func TestARefreshThatFindsAKeyUnchangedIsALook(t *testing.T) {
	conns := connectionsOf(nil)
	of := subject{key: "a"}
	r := conns.join(of, 7, 7)
	begin := time.Now()
	require.False(t, r.confirmedSince(begin, version{key: 7}))
	conns.confirm(of, version{key: 7}, begin.Add(1))
	require.True(t, r.confirmedSince(begin, version{key: 7}))
	require.False(t, r.confirmedSince(begin, version{key: 8}))
	require.False(t, r.confirmedSince(begin.Add(1), version{key: 7}))
	conns.leave(of)
	conns.confirm(of, version{key: 7}, begin)
}
