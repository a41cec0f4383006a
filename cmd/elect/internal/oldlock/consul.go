package oldlock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/electkv/election/kv"
)

// A consulName is what one Txn of reads has shown of a name, and then what the
// sessions are that hold its keys.
type consulName struct {
	client    *api.Client
	view      *View
	ctx       context.Context
	name, key string
	pairs     map[string]*api.KVPair // by key; none for a key that is not there
	wrong     error                  // what could not be read
}

// companion returns the key beside a record's key whose value stands plainly.
func companion(key string) string { return key + ".election" }

// lockEnding is what "consul lock" and api.Semaphore put behind a prefix.
const lockEnding = "/" + api.DefaultSemaphoreKey

// Consul reads the keys of a name at one moment, then asks for the sessions.
func Consul(ctx context.Context, client *api.Client, view *View, name string) ([]Lock, error) {
	n := &consulName{client: client, view: view, ctx: ctx, name: name, key: view.Key(name), pairs: map[string]*api.KVPair{}}
	if err := n.read(n.key, companion(n.key), n.key+lockEnding); err != nil {
		return nil, err
	}
	locks := []Lock{}
	if pair := n.pairs[n.key]; pair != nil {
		v, err := view.ask(ctx, name, OneKey)
		n.wrong = errors.Join(n.wrong, err)
		locks = append(locks, n.own(pair, v))
	}
	if pair := n.pairs[companion(n.key)]; pair != nil && n.view.Plain && kv.Decode(string(pair.Value)).Foreign && n.pairs[n.key] == nil {
		locks = append(locks, Lock{
			Kind: "a key of another program where the record belongs that goes with a plain value", Key: pair.Key,
			Here: true, Held: pair.Session != "", Stuck: pair.Session == "", Waiting: -1,
			Why: nobodyElected, Advice: "use another name, or no plain=true",
		})
	}
	if pair := n.pairs[n.key+lockEnding]; pair != nil {
		v, err := view.ask(ctx, name+lockEnding, OneKey)
		n.wrong = errors.Join(n.wrong, err)
		locks = append(locks, n.below(pair, v))
	}
	return locks, n.wrong
}

// read reads keys at one moment. Consul leaves out those that a token may not see.
func (n *consulName) read(keys ...string) error {
	ops := api.TxnOps{}
	for _, key := range keys {
		ops = append(ops, &api.TxnOp{KV: &api.KVTxnOp{Verb: api.KVGetOrEmpty, Key: key}})
	}
	ok, resp, _, err := n.client.Txn().Txn(ops, (&api.QueryOptions{RequireConsistent: true}).WithContext(n.ctx))
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("the read was refused: %s", resp.Errors[0].What)
	}
	if len(resp.Results) < len(keys) {
		n.wrong = fmt.Errorf("the token may not read all of %q", keys)
	}
	for _, result := range resp.Results {
		if result.KV != nil && result.KV.CreateIndex > 0 {
			n.pairs[result.KV.Key] = result.KV
		}
	}
	return nil
}

// own recognises what is at the key of the name.
func (n *consulName) own(pair *api.KVPair, v verdict) Lock {
	l := n.recognise(pair, v)
	l.Here = true
	l.Excludes = pair.Flags == api.LockFlagValue || v.observed
	l.Stuck = !l.Held && (!l.Excludes || n.view.Observed) // other flags keep the safe closed, whoever set them
	remove := "consul kv delete " + shellQuoted(pair.Key)
	switch {
	case l.Ours:
		v.matters(&l, n.view, remove)
	case n.view.Observed && l.Excludes && l.Held:
		l.Limited, l.Why = true, "its key stays when it is released, and keeps candidates of this URL out, since they judge expiry themselves"
		l.Advice = "use another name, or leave expiry=observer out of the URL (library: consulkv.New)"
	case n.view.Observed && l.Excludes:
		l.Why, l.Advice = nobodyElected, "where no candidate or lock uses sessions any more, remove it: "+remove
	case !l.Excludes && l.Advice == "":
		l.Advice = "none of this library coexists with it: use another name"
	case !l.Excludes:
	case !l.Held:
		l.Why = "a released lock leaves its key and the last holder's value; the next in may take it"
	case l.Kind == vaultLock:
		l.Limited, l.Why = true, "while a candidate holds it, no Vault is active"
		l.Advice = "leave Vault's own lock alone: use another name"
	default:
		l.Why, l.Advice = coexists, "keep this URL as it is (library: consulkv.New)"
		if l.Value != "" && !n.view.Plain {
			l.Advice = "for old programs that read the holder's value: plain=true in the URL (Options.Plain)"
		}
	}
	return l
}

// below recognises what "consul lock" or a semaphore has at <key>/.lock.
func (n *consulName) below(pair *api.KVPair, v verdict) Lock {
	l := n.recognise(pair, v)
	l.Why = hidden(n.key)
	switch pair.Flags {
	case api.LockFlagValue:
		l.Advice = fmt.Sprintf("use the name %q, with the default (consulkv.New)", n.name+lockEnding)
	case api.SemaphoreFlagValue:
		l.Advice = "no option coexists with a semaphore: end all its holders, then begin"
	default:
		l.Held, l.Why, l.Advice = false, "", "nothing, if it is data"
	}
	if !l.Held {
		l.Why = ""
	}
	return l
}

const vaultLock = "the HA lock of Vault"

// recognise says what a pair is, wherever it is, or looks like.
func (n *consulName) recognise(pair *api.KVPair, v verdict) Lock {
	l := Lock{Key: pair.Key, Value: string(pair.Value), Held: pair.Session != "", Waiting: -1}
	session := n.session(pair.Session)
	l.Holder = holder(pair.Session, session)
	switch pair.Flags {
	case api.LockFlagValue:
		l.Kind = lockKind(l, session.Name)
	case api.SemaphoreFlagValue:
		semaphore(pair, &l)
	default:
		otherFlags(pair, session.Name, &l)
	}
	if v.ours {
		v.name(&l)
	}
	return l
}

// lockKind tells the users of the lock flags apart by the names of their sessions.
func lockKind(l Lock, session string) string {
	switch {
	case strings.HasPrefix(session, "Consul lock for "), !l.Held && strings.HasSuffix(l.Key, lockEnding):
		return "consul lock"
	case session == "Vault Lock":
		return vaultLock
	case session == api.DefaultLockSessionName, !l.Held:
		return "api.Lock"
	}
	return "api.Lock, or a program with its flags"
}

// semaphore recognises the keys of api.Semaphore: the one that counts, and those of
// its contenders.
func semaphore(pair *api.KVPair, l *Lock) {
	l.Kind = "a contender of api.Semaphore or consul lock -n"
	l.Why = "a semaphore lets several in; its flags keep locks out for good, and the other way round"
	if !strings.HasSuffix(pair.Key, lockEnding) {
		return
	}
	l.Kind = "api.Semaphore or consul lock -n"
	var count struct {
		Limit   int
		Holders map[string]bool
	}
	if err := json.Unmarshal(pair.Value, &count); err != nil {
		return
	}
	l.Value, l.Held = "", len(count.Holders) > 0
	l.Holder = fmt.Sprintf("%d of %d slots taken", len(count.Holders), count.Limit)
}

// otherFlags recognises what has not got the flags of Consul's own locks.
func otherFlags(pair *api.KVPair, session string, l *Lock) {
	var lite struct {
		Hostname  string `json:"hostname"`
		Advertise string `json:"advertise-url"`
	}
	remove := "if no program needs it, remove it: consul kv delete " + shellQuoted(pair.Key)
	switch {
	case !l.Held:
		l.Kind = "plain data, or a lock that was overwritten"
		l.Why, l.Advice = nobodyElected, "see what it is; "+remove
	case lockKind(*l, session) != lockKind(*l, ""), strings.HasPrefix(session, "election: "):
		l.Kind = "a lock that was overwritten by a plain write"
		l.Why, l.Advice = "the write took off the flags of locks, so that no lock is taken here any more", "when its holder has stopped: "+remove
	default:
		l.Kind = "a lock with flags of its own, such as Patroni's"
		l.Why = "api.Lock and this library need the flags of locks on the key: its program does not set them, and each write takes them off"
		if json.Unmarshal(pair.Value, &lite) == nil && lite.Advertise != "" {
			l.Kind = "the primary of litefs"
		}
	}
}

// session asks for a session. It is empty if there is none, or none that the
// token may read.
func (n *consulName) session(id string) api.SessionEntry {
	if id == "" {
		return api.SessionEntry{}
	}
	session, _, err := n.client.Session().Info(id, (&api.QueryOptions{}).WithContext(n.ctx))
	if err != nil {
		n.wrong = errors.Join(n.wrong, err)
	}
	if session == nil {
		return api.SessionEntry{}
	}
	return *session
}

// holder describes a session. Consul does not tell when it was renewed last.
func holder(id string, session api.SessionEntry) string {
	if id == "" {
		return ""
	}
	text := "session " + id
	if session.ID == "" {
		return text
	}
	text += fmt.Sprintf(" (%.80q, node %.80q", session.Name, session.Node)
	switch ttl, err := time.ParseDuration(session.TTL); {
	case err == nil && ttl > 0:
		text += fmt.Sprintf(", TTL %v: freed within %v of its last renewal", ttl, 2*ttl+session.LockDelay)
	case len(session.NodeChecks)+len(session.ServiceChecks) == 0:
		text += ", no TTL and no checks: it lasts until somebody ends it"
	default:
		text += ", no TTL: it lasts until a check fails"
	}
	return text + ")"
}
