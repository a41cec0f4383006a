package oldlock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/kv"
)

const (
	theQueue = "layout=queue in the URL (library: etcdkv.NewQueue)"
	theKey   = "layout=key in the URL, the default (library: etcdkv.OneKey)"

	// What stands below the name, a slash, and another.
	slashNeeded = "its prefix ends with a slash: add suffix=/ to layout=queue in the URL (library: etcdkv.NewQueue with etcdkv.Options{Suffix: \"/\"})"
)

// An etcdName is what one Txn of reads has shown of a name.
type etcdName struct {
	client    *clientv3.Client
	view      *View
	name, key string

	single    *mvccpb.KeyValue   // the key itself, or nil
	line      []*mvccpb.KeyValue // below the key, in order, without values
	first     *mvccpb.KeyValue   // the first of them, with its value, or nil
	valkeyrie []*mvccpb.KeyValue // the line of a lock by valkeyrie

	atKey, atHead verdict // what the store says of the key, and of the line's head
}

// valkeyrieEnding is what valkeyrie (and libkv) puts behind a key to lock it.
const valkeyrieEnding = "___lock"

// Etcd reads all keys of a name at one revision, then asks the store whose they are,
// and for the leases.
func Etcd(ctx context.Context, client *clientv3.Client, view *View, name string) ([]Lock, error) {
	key := view.Key(name)
	inLine := []clientv3.OpOption{
		clientv3.WithPrefix(), clientv3.WithKeysOnly(),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend),
	}
	resp, err := client.Txn(ctx).Then(
		clientv3.OpGet(key),
		clientv3.OpGet(key+"/", inLine...),
		clientv3.OpGet(key+"/", clientv3.WithFirstCreate()...),
		clientv3.OpGet(key+valkeyrieEnding+"/", inLine...),
	).Commit()
	if err != nil {
		return nil, err
	}
	found := [][]*mvccpb.KeyValue{}
	for _, r := range resp.Responses {
		found = append(found, r.GetResponseRange().Kvs)
	}
	n := etcdName{
		client: client, view: view, name: name, key: key,
		single: firstOf(found[0]), line: found[1], first: firstOf(found[2]), valkeyrie: found[3],
	}
	n.atKey, n.atHead, err = n.judge(ctx)
	locks := n.locks()
	for i := range locks {
		err = errors.Join(err, n.addLease(ctx, &locks[i]))
	}
	return locks, err
}

// judge asks the store, in the layouts whose places there is something at.
func (n etcdName) judge(ctx context.Context) (atKey, atHead verdict, err error) {
	if n.single != nil {
		atKey, err = n.view.ask(ctx, n.name, OneKey)
	}
	if n.first != nil {
		var wrong error
		atHead, wrong = n.view.ask(ctx, n.name, Queue)
		err = errors.Join(err, wrong)
	}
	return atKey, atHead, err
}

func firstOf(pairs []*mvccpb.KeyValue) *mvccpb.KeyValue {
	if len(pairs) == 0 {
		return nil
	}
	return pairs[0]
}

// oneKey reports whether candidates of the URL use the key itself.
func (n etcdName) oneKey() bool { return n.view.Layout == OneKey }

func (n etcdName) locks() []Lock {
	locks := []Lock{}
	if n.single != nil {
		locks = append(locks, n.singleKey())
	}
	lines := n.inLine()
	if n.oneKey() {
		locks = append(locks, lines...)
	} else {
		locks = append(lines, locks...)
	}
	if member := firstMember(n.valkeyrie); member != nil {
		l := n.held(member)
		l.Kind, l.Waiting = "the lock of valkeyrie or libkv", len(n.valkeyrie)-1
		l.Why = hidden(n.place())
		l.Advice = fmt.Sprintf("use %s, and the name %q", theQueue, n.name+valkeyrieEnding)
		locks = append(locks, l)
	}
	return locks
}

// place is where candidates of the URL are.
func (n etcdName) place() string {
	if n.oneKey() {
		return n.key
	}
	return n.key + "/"
}

// held returns a lock with what every key tells.
func (n etcdName) held(pair *mvccpb.KeyValue) Lock {
	l := Lock{Key: string(pair.Key), Value: string(pair.Value), Held: true, Stuck: pair.Lease == 0, Waiting: -1}
	if pair.Lease != 0 {
		l.Holder = leasePrefix + leaseName(pair.Lease)
	}
	return l
}

// singleKey recognises what is at the key itself.
func (n etcdName) singleKey() Lock {
	l := n.held(n.single)
	l.Kind = "a key of somebody's own with a lease"
	l.Here, l.Excludes = n.oneKey(), n.oneKey()
	ours := n.atKey.ours
	if ours {
		n.atKey.name(&l)
	}
	switch {
	case ours && l.Here:
		n.atKey.matters(&l, n.view, "etcdctl del "+shellQuoted(l.Key))
	case ours:
		l.Why, l.Advice = hidden(n.place()), "give all candidates the same layout: here "+theKey
		if n.atKey.observed {
			l.Advice += ", with expiry=observer (library: etcdkv.NewObserved)"
		}
	case firstMember(n.valkeyrie) != nil:
		l.Kind = "the value beside a lock of valkeyrie or libkv"
		l.Held, l.Stuck = l.Here, l.Here && l.Stuck
		l.Why, l.Advice = "the lock is not here, but beside", "see there"
	case l.Stuck && l.Here:
		l.Kind, l.Why = "a key without a lease: data, or a lock that was left", nobodyElected
		l.Advice = "see what it is; if no program needs it, remove it: etcdctl del " + shellQuoted(l.Key)
	case l.Stuck:
		l.Kind = "a key without a lease, outside of the line of this name"
		l.Held, l.Stuck = false, false
		l.Advice = "nothing, if it is data; a lock made of one key needs " + theKey
	case l.Here:
		l.Why, l.Advice = coexists, "keep "+theKey+", if its program creates the key only where there is none"
	default:
		l.Why, l.Advice = hidden(n.place()), "use "+theKey
	}
	return l
}

// inLine recognises what is in the line below the key: the first, and whatever
// will never leave.
func (n etcdName) inLine() []Lock {
	line, slashed := n.line, []*mvccpb.KeyValue{}
	if n.oneKey() {
		line, slashed = n.membersBelow()
	}
	locks := []Lock{}
	if len(line) > 0 {
		l := n.head(line[0])
		l.Waiting = len(line) - 1
		n.judgeLine(&l)
		locks = append(locks, l)
		locks = append(locks, n.strangers(line[1:])...)
	}
	if len(slashed) > 0 {
		l := n.head(slashed[0])
		l.Waiting, l.Why = len(slashed)-1, hidden(n.place())
		l.Advice = slashNeeded
		locks = append(locks, l)
	}
	return locks
}

// membersBelow is for a URL whose candidates are at the key itself: what is below
// it may belong to other elections. It returns the line of this name if somebody
// stands in it, or else that of a lock whose prefix ends with a slash:
// NewElection(s, "/jobs/") has /jobs//<lease>.
func (n etcdName) membersBelow() (line, slashed []*mvccpb.KeyValue) {
	for _, pair := range n.line {
		switch n.below(pair) {
		case leaseName(pair.Lease):
			return n.line, nil
		case "/" + leaseName(pair.Lease):
			slashed = append(slashed, pair)
		}
	}
	return nil, slashed
}

// below returns the part of a key behind that of the name and its slash.
func (n etcdName) below(pair *mvccpb.KeyValue) string {
	return strings.TrimPrefix(string(pair.Key), n.key+"/")
}

// isHead reports whether a key is the first of all in line.
func (n etcdName) isHead(pair *mvccpb.KeyValue) bool {
	return n.first != nil && n.first.ModRevision == pair.ModRevision && string(n.first.Key) == string(pair.Key)
}

// valueOf returns the value of a key in line, if it is known.
func (n etcdName) valueOf(pair *mvccpb.KeyValue) string {
	if n.isHead(pair) {
		return string(n.first.Value)
	}
	return ""
}

// isMember reports whether a key ends with a slash and the lease that it has.
func isMember(pair *mvccpb.KeyValue) bool {
	return pair.Lease != 0 && strings.HasSuffix(string(pair.Key), "/"+leaseName(pair.Lease))
}

func firstMember(line []*mvccpb.KeyValue) *mvccpb.KeyValue {
	for _, pair := range line {
		if isMember(pair) {
			return pair
		}
	}
	return nil
}

// head recognises the first in a line.
func (n etcdName) head(pair *mvccpb.KeyValue) Lock {
	pair = &mvccpb.KeyValue{Key: pair.Key, Value: []byte(n.valueOf(pair)), Lease: pair.Lease, ModRevision: pair.ModRevision}
	l := n.held(pair)
	if !isMember(pair) {
		l.Kind = strange(pair)
		return l
	}
	switch {
	case n.isHead(pair) && n.atHead.ours:
		n.atHead.name(&l)
		if !n.oneKey() {
			n.atHead.matters(&l, n.view, "etcdctl del "+shellQuoted(l.Key))
		}
	case !kv.Decode(string(pair.Value)).Foreign:
		l.Kind = record // of another name, whose line is in that of this one
	case len(pair.Value) == 0:
		l.Kind = "concurrency.Mutex, etcdctl lock or v3lock"
	default:
		l.Kind = "concurrency.Election, etcdctl elect or v3election"
	}
	return l
}

// judgeLine says what the line of the name means for candidates of the URL.
func (n etcdName) judgeLine(l *Lock) {
	l.Here, l.Excludes = !n.oneKey(), !n.oneKey()
	first, rest, nested := strings.Cut(strings.TrimPrefix(l.Key, n.key+"/"), "/")
	switch {
	case l.Stuck:
		l.Why, l.Advice = "nobody behind it gets to lead", removeKey(l.Key)
	case l.Here && nested && first == "" && !strings.Contains(rest, "/"):
		l.Excludes, l.Why, l.Advice = false, "its program's prefix ends with a slash, so that it has two, and does not see candidates of this URL", slashNeeded
	case l.Here && nested:
		l.Limited, l.Why = true, "it stands in the line of a longer name, which is in that of this one as well"
		l.Advice = "use names of which none is the beginning of another with a slash behind it"
	case !l.Here && l.Ours:
		l.Why, l.Advice = hidden(n.place()), "give all candidates the same layout: here "+theQueue+", or claim"
	case !l.Here:
		l.Why, l.Advice = hidden(n.place()), "use "+theQueue
	case l.Ours:
	case n.view.Layout == Claim && l.Waiting > 0:
		l.Limited, l.Why, l.Advice = true, "candidates of layout=claim take an empty line only, and others wait in this one", "use "+theQueue
	case l.Value != "" && !n.view.Plain:
		l.Why, l.Advice = coexists, "for old programs that read the leader's value: plain=true in the URL (Options.Plain)"
	default:
		l.Why, l.Advice = coexists, "keep layout="+string(n.view.Layout)
	}
}

// strangers returns those in line, behind the first, that are no candidates: they
// hold everybody up when it is their turn.
func (n etcdName) strangers(line []*mvccpb.KeyValue) []Lock {
	const most = 3
	locks := []Lock{}
	for _, pair := range line {
		if isMember(pair) || len(locks) == most {
			continue
		}
		l := n.held(pair)
		l.Kind, l.Here, l.Excludes, l.Limited = strange(pair), !n.oneKey(), !n.oneKey(), true
		l.Why, l.Advice = "nobody behind it in the line gets to lead", removeKey(l.Key)
		locks = append(locks, l)
	}
	return locks
}

// strange says what a key in line is that is not named after its lease.
func strange(pair *mvccpb.KeyValue) string {
	if pair.Lease == 0 {
		return "a key without a lease, made by hand, in the line of a lock"
	}
	return "a key that is not named after its lease, made by hand, in the line of a lock"
}

func removeKey(key string) string {
	return "if no program needs it, remove it: etcdctl del " + shellQuoted(key)
}

func shellQuoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

const leasePrefix = "lease "

func leaseName(id int64) string { return strconv.FormatInt(id, 16) }

// addLease asks how long the lease of a lock lasts.
func (n etcdName) addLease(ctx context.Context, l *Lock) error {
	name, ok := strings.CutPrefix(l.Holder, leasePrefix)
	if !ok {
		return nil
	}
	id, err := strconv.ParseInt(name, 16, 64)
	if err != nil {
		return err
	}
	life, err := n.client.TimeToLive(ctx, clientv3.LeaseID(id))
	if err != nil {
		return err
	}
	if life.TTL > 0 {
		l.Left = time.Duration(life.TTL) * time.Second
		l.Holder += fmt.Sprintf(" of %d s", life.GrantedTTL)
	}
	return nil
}
