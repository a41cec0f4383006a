package kv_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

func TestARecordOwnsWhatHasItsSignatureAndToken(t *testing.T) {
	mine := kv.Record{Signature: "me", Token: 7, Revision: 1, Value: "v", Lease: "l"}
	for what, c := range map[string]struct {
		other kv.Record
		owns  bool
	}{
		"itself":                  {mine, true},
		"a later value":           {kv.Record{Signature: "me", Token: 7, Revision: 9, Value: "w"}, true},
		"an earlier stretch":      {kv.Record{Signature: "me", Token: 6, Revision: 1}, false},
		"another's":               {kv.Record{Signature: "you", Token: 7, Revision: 1}, false},
		"a foreign one":           {kv.Record{Signature: "me", Token: 7, Revision: 1, Foreign: true}, false},
		"nothing":                 {kv.Record{}, false},
		"one without a signature": {kv.Record{Token: 7}, false},
	} {
		require.Equal(t, c.owns, mine.Owns(c.other), what)
		require.Equal(t, c.owns, c.other.Owns(mine), "%s, the other way round", what)
	}
	require.False(t, kv.Record{}.Owns(kv.Record{}), "nothing owns nothing")
	foreign := kv.Record{Value: "x", Foreign: true, Token: 1}
	require.False(t, foreign.Owns(foreign), "a foreign record owns nothing")
}

func TestTheDefiniteOutcomesAreToldApart(t *testing.T) {
	outcomes := []error{kv.ErrVacant, kv.ErrHeld, kv.ErrStale, kv.ErrInvalid}
	for i, err := range outcomes {
		wrapped := fmt.Errorf("etcdkv: create %q: %w", "safe", err)
		for j, other := range outcomes {
			require.Equal(t, i == j, errors.Is(wrapped, other), "%v and %v", err, other)
		}
	}
}
