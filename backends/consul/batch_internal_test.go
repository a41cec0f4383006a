package consulkv

import (
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"
)

// Where a snapshot of another cluster was restored, a key may have an index again.
func TestAnIndexProvesNothingOfAnotherSession(t *testing.T) {
	pair := api.KVPair{Key: "a", ModifyIndex: 7, Session: "mine", Flags: api.LockFlagValue}
	is := []*api.KVTxnOp{at("a", 7)}
	require.True(t, locks(api.KVPairs{&pair}, 0, is, "mine"))
	require.False(t, locks(api.KVPairs{&pair}, 0, is, "another"))
	require.False(t, locks(api.KVPairs{&pair}, 1, is, "mine"))
	require.False(t, locks(api.KVPairs{&pair}, 0, []*api.KVTxnOp{at("b", 7)}, "mine"))
	require.False(t, locks(api.KVPairs{&pair}, 0, []*api.KVTxnOp{at("a", 8)}, "mine"))
	plainly := pair
	plainly.Flags = 0
	require.False(t, locks(api.KVPairs{&plainly}, 0, is, "mine"))
}
