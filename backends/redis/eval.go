package rediskv

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/electkv/election/kv"
)

// Eval carries out a Lua script in the same atomic step that finds the safe to hold rec,
// by its signature and token. An owner that slept while the safe went to another cannot
// write that way. A new value or a refresh meanwhile does no harm. It is for data on the
// same server; elsewhere, check the token.
//
//	name, rec := term.NamedRecord()
//	_, err := store.Eval(ctx, name, rec,
//		`return redis.call('SET', KEYS[1], ARGV[1])`, []string{"{jobs}:last"}, "42")
//
// The source, keys and args are those of an EVAL: the script has KEYS and ARGV of its
// own, which begin at 1. It is a function's body, so that a first line of the kind
// "#!lua" is refused with [kv.ErrInvalid]. The server keeps each source that it has seen:
// what varies belongs into args. In a cluster the keys must be in the slot of the
// record's key, as {jobs}:last is in that of jobs; the server refuses others (CROSSSLOT).
// The source is trusted like the program: one that is made of what others send can do
// anything, even before the check.
//
// The result is of the types that go-redis has for replies, with [redis.Nil] for
// an error if the script returns nil or false. What the script returns or throws
// as an error, and every other refusal of the server, is a [redis.Error]; a
// script that fails in the middle leaves done what it has done.
//
// It returns [kv.ErrStale] if the safe does not hold rec; then the script has not
// begun. It is sent once. After any other error that is none of the server's the
// script may have been carried out or not.
func (s *Store) Eval(ctx context.Context, name string, rec kv.Record, source string, keys []string, args ...any) (any, error) {
	at, err := s.place(name)
	if err != nil {
		return nil, err
	}
	if err := checkOwn(name, rec); err != nil {
		return nil, err
	}
	if strings.HasPrefix(source, "#!") {
		return nil, fmt.Errorf("rediskv: eval %q: want a script without a line that begins with #!: %w", name, kv.ErrInvalid)
	}
	reply, err := s.run(ctx, s.fenced(source), at.keys(keys...), append([]any{rec.Signature, rec.Token}, args...)...)
	if err := outcome("eval", name, err, kv.ErrStale); err != nil {
		if errors.Is(err, kv.ErrStale) {
			err = fmt.Errorf("the safe holds another record, or none; nothing was done: %w", err)
		}
		return nil, err
	}
	wrapped, ok := reply.([]any)
	if !ok || len(wrapped) > 1 {
		return nil, fmt.Errorf("rediskv: eval %q: the server's reply is %T, want the script's in a list", name, reply)
	}
	if len(wrapped) == 0 || wrapped[0] == nil {
		return nil, redis.Nil
	}
	if refusal, ok := wrapped[0].(error); ok {
		return nil, fmt.Errorf("rediskv: eval %q: %w", name, refusal)
	}
	return wrapped[0], nil
}

// fenced returns the script that checks the safe before it goes on with a
// caller's. That one comes first, so that errors in it tell its own lines, and so
// that it sees nothing of ours.
func (s *Store) fenced(source string) script {
	judge := byServer
	if s.observed {
		judge = byObservers
	}
	return newScript("local function fenced(KEYS, ARGV) ", source, "\nend\n", judge, recordLua, evalLua)
}
