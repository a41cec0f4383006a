package consulkv

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"
)

const (
	// txnOps is how many operations a server takes in a Txn.
	txnOps = 128

	// longestTxn is how many bytes of operations without values are put into one Txn, at most.
	// Servers take 512 KiB by default.
	longestTxn = 384 << 10

	// opSize is what an operation is taken to need beside its key, and escaped what a byte of
	// that may need.
	opSize, escaped = 256, 6

	// refusalsOfTxn is how often a Txn that looks at many keys is made without those that were
	// refused, before they are looked at by themselves.
	refusalsOfTxn = 3

	// long is how long a request may take before it holds up no other that is made for many
	// keys.
	long = 100 * time.Millisecond
)

// sizeOf returns how many bytes an operation needs at most that has a key and no value.
func sizeOf(key string) int { return opSize + escaped*len(key) }

// txnsOf divides up what needs so many operations each into what one Txn has room for.
func txnsOf[T any](all []T, each int, key func(T) string) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		begin, bytes := 0, 0
		for i, one := range all {
			size := each * sizeOf(key(one))
			if (i-begin+1)*each > txnOps || i > begin && bytes+size > longestTxn {
				if !yield(all[begin:i]) {
					return
				}
				begin, bytes = i, 0
			}
			bytes += size
		}
		if begin < len(all) {
			yield(all[begin:])
		}
	}
}

// unchanged is the condition that the safe is still as it was read.
func (s *Store) unchanged(key string, e entry) []*api.KVTxnOp {
	ops := []*api.KVTxnOp{at(key, e.version.key)}
	if s.opts.Plain {
		ops = append(ops, at(companion(key), e.version.companion))
	}
	return ops
}

func at(key string, index uint64) *api.KVTxnOp {
	if index == 0 {
		return &api.KVTxnOp{Verb: api.KVCheckNotExists, Key: key}
	}
	return &api.KVTxnOp{Verb: api.KVCheckIndex, Key: key, Index: index}
}

// lock writes the text and makes the session hold the key. Consul refuses it if
// another session does, but not if the key holds a value without a session: it
// needs a condition beside it. Unlike a plain write it keeps the LockIndex.
//
// It has to change the key, or a companion would prove nothing: either another
// value must come in, or the key must be unlocked or stirred before. The companion
// is made anew, which changes it too, and takes it from whoever holds it.
func (s *Store) lock(key string, t text, session string) []*api.KVTxnOp {
	ops := []*api.KVTxnOp{hold(key, t.key, session)}
	if s.opts.Plain {
		ops = append(ops, remove(companion(key)), hold(companion(key), t.companion, session))
	}
	return ops
}

// stir writes another value first, if the key has the plain value already that
// is to be written: what comes after it is a change then, which only the
// companion tells. Nobody sees what a Txn has overwritten itself, and unlike an
// unlock it keeps the LockIndex.
func (s *Store) stir(key string, now entry, next text) []*api.KVTxnOp {
	switch {
	case !s.opts.Plain || now.rec.Value != next.key:
		return nil
	case next.key == "":
		return []*api.KVTxnOp{hold(key, "-", now.session)}
	}
	return []*api.KVTxnOp{hold(key, "", now.session)}
}

func hold(key, value, session string) *api.KVTxnOp {
	return &api.KVTxnOp{
		Verb: api.KVLock, Key: key, Value: []byte(value),
		Flags: api.LockFlagValue, Session: session,
	}
}

// unlock opens the key, if the session holds it, and leaves a value there, which is
// mostly empty. The key stays, as it does when a session expires.
func (s *Store) unlock(key, session, value string) []*api.KVTxnOp {
	ops := []*api.KVTxnOp{{Verb: api.KVUnlock, Key: key, Value: []byte(value), Flags: api.LockFlagValue, Session: session}}
	if s.opts.Plain {
		ops = append(ops, remove(companion(key)))
	}
	return ops
}

// remove deletes the key, if it is there.
func remove(key string) *api.KVTxnOp { return &api.KVTxnOp{Verb: api.KVDelete, Key: key} }

// apply carries out all operations or none, through Raft, and returns the
// ModifyIndex of the last lock on key. A *refusal is definite: nothing
// happened. After any other error it may have, or may still.
func (s *Store) apply(ctx context.Context, key string, ops []*api.KVTxnOp) (uint64, error) {
	results, err := s.transact(ctx, ops, &api.QueryOptions{})
	if err != nil {
		return 0, err
	}
	for _, result := range slices.Backward(results) {
		if result.Key == key {
			return result.ModifyIndex, nil
		}
	}
	// Results that the client's token may not read are left out.
	return 0, fmt.Errorf("the server did not say what it wrote at %q: the client needs key:read", key)
}

func (s *Store) transact(ctx context.Context, ops []*api.KVTxnOp, query *api.QueryOptions) (found api.KVPairs, _ error) {
	err := s.conns.request(ctx, func(ctx context.Context) (err error) {
		found, err = transact(ctx, s.client, ops, query)
		return err
	})
	return found, err
}

func transact(ctx context.Context, client *api.Client, ops []*api.KVTxnOp, query *api.QueryOptions) (api.KVPairs, error) {
	done, answer, _, err := client.KV().Txn(ops, query.WithContext(ctx))
	switch {
	case err != nil:
		return nil, err
	case !done && len(answer.Errors) > 0:
		return nil, &refusal{answer.Errors}
	case !done:
		return nil, errors.New("the server rolled a transaction back and did not say why")
	}
	return answer.Results, nil
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

// denied reports whether the client lacks the rights to a key. Then nothing was looked at.
func (r *refusal) denied() bool {
	return slices.ContainsFunc(r.reasons, func(e *api.TxnError) bool { return strings.HasPrefix(e.What, "Permission denied") })
}

// onlyFirst reports whether it was the first operation alone that was refused.
func (r *refusal) onlyFirst() bool {
	return !slices.ContainsFunc(r.reasons, func(e *api.TxnError) bool { return e.OpIndex != 0 })
}

// ops returns which operations were refused. The others were not, or nobody has looked at them:
// a server that denies the client one operation carries out none.
func (r *refusal) ops() map[int]bool {
	all := make(map[int]bool, len(r.reasons))
	for _, e := range r.reasons {
		all[e.OpIndex] = true
	}
	return all
}
