//go:build unix

package consulkv_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/consul"
	"github.com/electkv/election/kv"
)

// keysOf returns the keys of a roster as Consul has them.
func keysOf(t *testing.T, client *api.Client, roster string) []string {
	t.Helper()
	keys, _, err := client.KV().Keys(kv.MemberName(roster, ""), "", &api.QueryOptions{RequireConsistent: true})
	require.NoError(t, err)
	return keys
}

func TestAMemberThatLeavesTakesItsKeyAlong(t *testing.T) {
	for _, opts := range []*consulkv.Options{options, plain} {
		s, client, _ := openAs(t, opts)
		roster := newName()
		name := kv.MemberName(roster, "A1")
		rec := signed("v", time.Minute)
		rec.Shared = true
		rec = create(t, s, name, rec)
		require.Equal(t, []string{name}, keysOf(t, client, roster))
		require.NoError(t, s.Delete(t.Context(), name, rec))
		require.Empty(t, keysOf(t, client, roster))
	}
}

// A session that was not renewed for a TTL may end at any time, and what renews it then proves
// nothing. So a candidate leaves its record to expire with it, and enters another.
func TestAMemberWhoseSessionWasNotRenewedInTimeEntersAnew(t *testing.T) {
	t.Parallel() // mostly it waits
	s, client, requests := openAs(t, options)
	name := newName()
	candidate, err := election.New(s, name, &election.Options{TTL: 4 * ttl, Roster: true})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- candidate.Run(ctx, func(ctx context.Context, _ *election.Term) error {
			<-ctx.Done()
			return nil
		})
	}()
	defer func() {
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	}()
	listed := func() string {
		all, err := election.Members(t.Context(), s, name)
		require.NoError(t, err)
		if len(all) != 1 || all[0].Role != election.RoleLeader {
			return ""
		}
		return all[0].Safe
	}
	require.Eventually(t, func() bool { return listed() != "" }, 20*ttl, ttl/10)
	first := listed()
	pair, _, err := client.KV().Get(first, nil)
	require.NoError(t, err)
	requests.refuse(func(req *http.Request) error {
		if isRenewal(req) && strings.HasSuffix(req.URL.Path, pair.Session) {
			return errRefused
		}
		return nil
	})
	time.Sleep(5 * ttl) // Consul keeps it for two TTLs
	requests.refuse(nil)
	require.Eventually(t, func() bool { return listed() != "" && listed() != first }, 40*ttl, ttl/10)
}

// Only what begins as the key of the one that enters does, only what is vacant, and nothing that
// another program has put there.
func TestWhoEntersARosterClearsWhatTheDeadHaveLeft(t *testing.T) {
	s, client, _ := openAs(t, options)
	roster := newName()
	var dead []string
	for i := range 70 { // more than one Txn has room for
		name := kv.MemberName(roster, fmt.Sprint("A", i))
		dead = append(dead, create(t, s, name, signed("v", time.Minute)).Lease)
	}
	other, foreign, lives := kv.MemberName(roster, "B1"), kv.MemberName(roster, "Aforeign"), kv.MemberName(roster, "Alives")
	dead = append(dead, create(t, s, other, signed("v", time.Minute)).Lease)
	operator{client}.put(t, foreign, "somebody's")
	rec := create(t, s, lives, signed("v", time.Minute))
	for _, session := range dead { // as when it expires
		_, err := client.Session().Destroy(session, nil)
		require.NoError(t, err)
	}
	all, _, err := s.Members(t.Context(), roster, 100)
	require.NoError(t, err)
	require.Len(t, all, 2, "the dead are not listed")
	require.Len(t, keysOf(t, client, roster), len(dead)+2, "but their keys are there")
	enters := kv.MemberName(roster, "Aenters")
	create(t, s, enters, signed("v", time.Minute))
	require.ElementsMatch(t, []string{other, foreign, lives, enters}, keysOf(t, client, roster))
	_, err = s.Refresh(t.Context(), lives, rec)
	require.NoError(t, err)
	pair, _, err := client.KV().Get(foreign, nil)
	require.NoError(t, err)
	require.Equal(t, "somebody's", string(pair.Value))
}
