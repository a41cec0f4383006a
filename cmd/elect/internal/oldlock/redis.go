package oldlock

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/electkv/election/kv"
)

// A redisKey is what is at a key.
type redisKey struct {
	key   string
	kind  string // Redis's type; "none" if there is no such key
	value string
	left  time.Duration // negative: no expiry
}

// A redisName is what has been read of a name.
type redisName struct {
	client    redis.UniversalClient
	view      *View
	ctx       context.Context
	name, key string
}

// Redis asks the store, and reads the key, those of the record and the counter beside
// it, and the keys that rueidislock would have.
func Redis(ctx context.Context, client redis.UniversalClient, view *View, name string) ([]Lock, error) {
	n := redisName{client: client, view: view, ctx: ctx, name: name, key: view.Key(name)}
	found, err := n.read(n.key, besideKey(n.key, "record"), besideKey(n.key, "fence"))
	if err != nil {
		return nil, err
	}
	locks := []Lock{}
	switch {
	case found[0].kind != "none":
		var l Lock
		l, err = n.recognise(found[0])
		locks = append(locks, l)
	case found[2].damaged():
		locks = append(locks, Lock{
			Kind: "a counter of tokens that holds no number", Key: found[2].key, Value: found[2].value,
			Here: true, Held: true, Stuck: true, Waiting: -1,
			Why: nobodyElected, Advice: "remove it, and tokens go on from the server's clock: redis-cli del " + shellQuoted(found[2].key),
		})
	case view.Plain && found[1].inTheWay():
		locks = append(locks, Lock{
			Kind: "a key of another program where the record belongs that goes with a plain value", Key: found[1].key,
			Here: true, Held: true, Stuck: found[1].left < 0, Left: max(found[1].left, 0), Waiting: -1,
			Why: nobodyElected, Advice: "use another name, or no plain=true",
		})
	}
	held, late := n.rueidis(rueidisPrefix, n.key)
	if len(held) > 0 {
		locks = append(locks, n.beside(held))
	}
	return locks, errors.Join(err, late)
}

// read reads keys, in one round trip but not in one step: what changes meanwhile
// may look odd once.
func (n redisName) read(keys ...string) ([]redisKey, error) {
	pipe := n.client.Pipeline()
	kinds, lefts, values := []*redis.StatusCmd{}, []*redis.DurationCmd{}, []*redis.StringCmd{}
	for _, key := range keys {
		kinds = append(kinds, pipe.Type(n.ctx, key))
		lefts = append(lefts, pipe.PTTL(n.ctx, key))
		values = append(values, pipe.Get(n.ctx, key))
	}
	_, _ = pipe.Exec(n.ctx) // each command has its own error
	found := []redisKey{}
	for i, key := range keys {
		at := redisKey{key: key, kind: kinds[i].Val(), left: lefts[i].Val(), value: values[i].Val()}
		err := errors.Join(kinds[i].Err(), lefts[i].Err())
		switch wrong := values[i].Err(); {
		case errors.Is(wrong, redis.Nil):
			at.kind = "none"
		case wrong != nil && (at.kind == "string" || at.kind == ""):
			err = errors.Join(err, wrong)
		}
		if err != nil {
			return nil, fmt.Errorf("key %.200q: %w", key, err)
		}
		found = append(found, at)
	}
	return found, nil
}

// recognise says what the key of the name looks like.
func (n redisName) recognise(at redisKey) (Lock, error) {
	l := Lock{Key: at.key, Value: at.value, Here: true, Held: true, Excludes: true, Left: max(at.left, 0), Waiting: -1}
	if at.kind != "string" {
		l.Kind, l.Excludes, l.Stuck = "a Redis "+at.kind, false, at.left < 0
		l.Why = "nobody can be elected while it is there, and its program may fail on a record, which is a string"
		l.Advice = "none of this library coexists with it: use another name"
		return l, nil
	}
	v, err := n.view.ask(n.ctx, n.name, OneKey)
	if err != nil {
		return l, errors.Join(err, n.foreign(at, &l))
	}
	if v.ours {
		v.name(&l)
		v.matters(&l, n.view, "redis-cli del "+shellQuoted(at.key))
		if !v.observed { // where observers judge, no record has an expiry
			stripped(at, &l)
		}
		return l, nil
	}
	return l, n.foreign(at, &l)
}

// stripped is for a record without an expiry, which its owner restores.
func stripped(at redisKey, l *Lock) {
	if at.left < 0 {
		l.Limited, l.Why = true, "something took its expiry off; its leader restores it, and if there is none it stays"
		l.Advice = "if nobody leads, remove it: redis-cli del " + shellQuoted(at.key)
	}
}

// inTheWay reports whether something beside a vacant key is no text of a record, so
// that a create is refused.
func (at redisKey) inTheWay() bool {
	text, _, ok := strings.Cut(at.value, "\n")
	return at.kind != "none" && (at.kind != "string" || !ok || kv.Decode(text).Foreign)
}

// damaged reports whether a counter of tokens is no number that could be counted
// on, so that a create is refused.
func (at redisKey) damaged() bool {
	n, err := strconv.ParseUint(at.value, 10, 53)
	return at.kind != "none" && (at.kind != "string" || err != nil || n == 1<<53-1)
}

// besideKey is where rediskv keeps what belongs to a record: the record itself, if
// the value is published plainly, and the counter of tokens. See the package
// documentation there.
func besideKey(key, what string) string {
	if _, rest, ok := strings.Cut(key, "{"); ok && strings.Index(rest, "}") > 0 {
		return key + "::election-" + what
	}
	return "{" + key + "}:election-" + what
}

// foreign recognises a string that is no record.
func (n redisName) foreign(at redisKey, l *Lock) error {
	shape := shapeOf(at.value)
	l.Kind, l.Why, l.Advice = shape.kind, coexists+shape.note, "keep this URL as it is (library: rediskv.New)"
	if shape.value {
		if !n.view.Plain {
			l.Advice = "for old programs that read the value: plain=true in the URL (Options.Plain), and publish none that they take for their own"
		}
	} else {
		l.Value = ""
	}
	if shape.why != "" {
		l.Limited, l.Why = true, shape.why
	}
	if shape.never {
		l.Excludes, l.Advice = false, "none of this library coexists with it: use another name"
	}
	if at.left < 0 {
		l.Kind, l.Stuck, l.Value = "a key without an expiry: data, or a SETNX whose EXPIRE never came", true, at.value
		l.Why, l.Advice = nobodyElected, "see what it is; if no program needs it, remove it: redis-cli del "+shellQuoted(at.key)
		return nil
	}
	parts := rueidisKey().FindStringSubmatch(at.key)
	if len(at.value) != rueidisBytes || parts == nil {
		return nil
	}
	held, err := n.rueidis(parts[1], parts[3])
	if err != nil {
		return err
	}
	l.Kind, l.Value, l.Why, l.Advice = rueidisKind, "", coexists, "keep this URL as it is (library: rediskv.New), if its KeyMajority is 1"
	if len(held) > 1 {
		l.Excludes, l.Why, l.Advice = false, rueidisWhy(held), noMajority
	}
	return nil
}

const (
	rueidisPrefix = "rueidislock" // its default KeyPrefix
	rueidisKind   = "rueidislock"
	rueidisBytes  = 24 // of its values
	rueidisMost   = 9  // keys to look at: KeyMajority up to 5
	noMajority    = "none of this library coexists with a majority of several keys: stop the old programs, then begin"
)

// rueidisKey matches the keys of rueidislock: prefix, number, name.
func rueidisKey() *regexp.Regexp { return regexp.MustCompile(`(?s)^(.+?):([0-8]):(.+)$`) }

// rueidis returns those of the keys of a lock of rueidislock that are held.
func (n redisName) rueidis(prefix, name string) ([]redisKey, error) {
	keys := []string{}
	for i := range rueidisMost {
		keys = append(keys, prefix+":"+strconv.Itoa(i)+":"+name)
	}
	found, err := n.read(keys...)
	held := []redisKey{}
	for _, at := range found {
		if at.kind == "string" && len(at.value) == rueidisBytes {
			held = append(held, at)
		}
	}
	return held, err
}

func rueidisWhy(held []redisKey) string {
	keys := []string{}
	for _, at := range held {
		keys = append(keys, fmt.Sprintf("%.100q", at.key))
	}
	return "its holder has a majority of several keys: " + strings.Join(keys, ", ")
}

// beside describes a lock of rueidislock of the name.
func (n redisName) beside(held []redisKey) Lock {
	l := Lock{Kind: rueidisKind, Key: held[0].key, Held: true, Left: max(held[0].left, 0), Stuck: false, Waiting: -1}
	l.Why, l.Advice = hidden(n.key), fmt.Sprintf("use prefix=%s in the URL (Options.Prefix), if KeyMajority is 1", rueidisPrefix+":0:"+n.view.Prefix)
	if len(held) > 1 {
		l.Why, l.Advice = rueidisWhy(held)+"; "+l.Why, noMajority
	}
	return l
}
