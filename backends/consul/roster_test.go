//go:build unix

package consulkv_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"

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
