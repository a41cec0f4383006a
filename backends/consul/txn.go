package consulkv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/consul/api"
)

// unchanged is the condition that the key is still as it was read.
func unchanged(key string, e entry) *api.KVTxnOp {
	if e.index == 0 {
		return &api.KVTxnOp{Verb: api.KVCheckNotExists, Key: key}
	}
	return &api.KVTxnOp{Verb: api.KVCheckIndex, Key: key, Index: e.index}
}

// lock writes the text and makes the session hold the key. Consul refuses it if
// another session does, but not if the key holds a value without a session: it
// needs a condition beside it. Unlike a plain write it keeps the LockIndex.
func lock(key, text, session string) *api.KVTxnOp {
	return &api.KVTxnOp{
		Verb: api.KVLock, Key: key, Value: []byte(text),
		Flags: api.LockFlagValue, Session: session,
	}
}

// unlock opens the key, with an empty value, if the session holds it. The key
// stays, as it does when a session expires.
func unlock(key, session string) *api.KVTxnOp {
	return &api.KVTxnOp{Verb: api.KVUnlock, Key: key, Flags: api.LockFlagValue, Session: session}
}

// apply carries out all operations or none, through Raft, and returns the
// ModifyIndex of the last lock on key. A [*refusal] is definite: nothing
// happened. After any other error it may have, or may still.
func (s *Store) apply(ctx context.Context, key string, ops ...*api.KVTxnOp) (uint64, error) {
	done, answer, _, err := s.client.KV().Txn(ops, (&api.QueryOptions{}).WithContext(ctx))
	switch {
	case err != nil:
		return 0, err
	case !done && len(answer.Errors) > 0:
		return 0, &refusal{answer.Errors}
	case !done:
		return 0, errors.New("the server rolled a transaction back and did not say why")
	}
	for _, result := range slices.Backward(answer.Results) {
		if result.Key == key {
			return result.ModifyIndex, nil
		}
	}
	// Results that the client's token may not read are left out.
	return 0, fmt.Errorf("the server did not say what it wrote at %q: the client needs key:read", key)
}

// A refusal says why the server rolled a Txn back. The reasons are text, so as
// little as possible is concluded from them: the key itself tells the rest.
type refusal struct{ reasons api.TxnErrors }

func (r *refusal) Error() string {
	texts := make([]string, len(r.reasons))
	for i, e := range r.reasons {
		texts[i] = e.What
	}
	return "refused: " + strings.Join(texts, "; ")
}

// lockDelay reports whether the key is closed for a while after its last
// session. The server looks at that before anything else.
func (r *refusal) lockDelay() bool {
	for _, e := range r.reasons {
		if strings.HasPrefix(e.What, "failed to lock key ") && strings.HasSuffix(e.What, " due to lock delay") {
			return true
		}
	}
	return false
}
