//go:build linux

package interop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/test/interop/coexist"
)

func TestErasuresAreReadOutOfAHistory(t *testing.T) {
	at := func(at time.Duration, who string, kind history.Kind, value, result string) history.Event {
		return history.Event{At: at, Who: who, Kind: kind, Op: opDel, Value: value, Result: result}
	}
	require.Equal(t, []coexist.Erasure{
		{Who: "old-1", Sent: 1, Answered: 4, Owner: "new-1"},
		{Who: "old-2", Sent: 2, Answered: 3},
		{Who: "old-1", Sent: 5, Answered: 6, Unknown: true},
		{Who: "old-2", Sent: 7, Answered: 7 + impatience, Unknown: true},
	}, erasures(history.History{Events: []history.Event{
		at(1, "old-1", history.Sent, "", ""), at(2, "old-2", history.Sent, "", ""),
		at(3, "old-2", history.Answered, "", history.OK), at(4, "old-1", history.Answered, "new-1", history.OK),
		at(5, "old-1", history.Sent, "", ""), at(6, "old-1", history.Answered, "", history.Unknown),
		at(7, "old-2", history.Sent, "", ""), // it was killed
		{At: 8, Who: "old-1", Kind: history.Elected, Value: "x"},
	}}))
}

func TestWhatTheStoreShowsIsToldApart(t *testing.T) {
	for text, want := range map[string]struct {
		owner string
		old   bool
	}{
		kv.Encode(kv.Record{Signature: "s", Value: "new-1.7.1", TTL: time.Second}):    {"new-1.7.1", false},
		kv.Encode(kv.Record{Signature: "s", Value: "new-1.7.1/99", TTL: time.Second}): {"new-1.7.1", false},
		"new-2.8.3":    {"new-2.8.3", false},
		"new-2.8.3/17": {"new-2.8.3", false},
		"old-1.9.4":    {"old-1.9.4", true},
		"a token==":    {"a token==", true},
		"\x00\xff":     {`"\x00\xff"`, true},
		"":             {"", true},
	} {
		owner, old := whose(text)
		require.Equal(t, want.owner, owner, text)
		require.Equal(t, want.old, old, text)
	}
}
