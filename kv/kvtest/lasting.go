package kvtest

import (
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

var lastingCases = []Case{{
	Name:   "a lasting record fades by its TTL alone",
	Clause: "Lasting: it lives for its TTL whatever happens to the process that wrote it, and after Lifetime.Max it has expired for every client, even for one that has never read the safe before. A store whose records cannot be lasting returns ErrInvalid.",
	check:  aLastingRecordFadesByItsTTLAlone,
}}

// Nobody looks at the record twice, and its writer is gone.
func aLastingRecordFadesByItsTTLAlone(t *trial) {
	name, writer := t.name(), t.open()
	draft := t.mortal("v")
	draft.Lasting = true
	start := time.Now()
	rec, err := writer.Create(t.ctx, name, draft)
	if errors.Is(err, kv.ErrInvalid) {
		t.vacant(name)
		return
	}
	require.NoError(t, err)
	require.False(t, rec.Lasting, "it is never set in a record that a store returns")
	if t.b.Quit != nil {
		t.b.Quit(t, writer)
	}
	deadline := start.Add(t.lifetime(draft.TTL).Max + patience)
	for {
		got, err := t.open().Get(t.ctx, name)
		now := time.Now()
		if errors.Is(err, kv.ErrVacant) {
			require.False(t, now.Before(earliest(start, rec.TTL)), "the record faded after %v, before its TTL of %v", now.Sub(start), rec.TTL)
			break
		}
		require.NoError(t, err, "get %.80q", name)
		require.Equal(t, rec, got)
		require.True(t, now.Before(deadline), "the record has not faded after %v; its TTL was %v", now.Sub(start), rec.TTL)
		time.Sleep(t.ttl / 10)
	}
	next := t.succeed(t.open(), name, t.signed("the next"))
	require.Greater(t, next.Token, rec.Token)
}
