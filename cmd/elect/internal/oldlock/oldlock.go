// Package oldlock recognises the locks that services had before: what is at the
// keys of an election's name, and beside them where such a lock would be.
//
// [Etcd], [Consul] and [Redis] return what they find for a name: what is Here comes
// first. They read only. Nothing found means that the safe is vacant and no lock is
// beside it. An error says what could not be read; what could be is returned with it.
//
// What a record of this library is the store says, by the URL's settings of layout
// and plain, and by the others. Everything else goes by shapes (names of keys,
// flags, the form of a value), and a shape may mislead. So it only tells people
// what something looks like. It changes nothing, and nothing is ever done because
// of what it says.
package oldlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/electkv/election/kv"
)

// A Lock is what is at one key, or in one line of keys.
type Lock struct {
	Kind  string // in words: it looks like this
	Key   string
	Value string // published for others to read; empty if it says nothing to them

	Here     bool // it is where candidates of the store's URL put their records
	Ours     bool // it is a record of this library
	Held     bool
	Stuck    bool // it stays until somebody removes it
	Excludes bool // it and the candidates of the store's URL keep each other out
	Limited  bool // they do, but not well: Why says in what

	Holder  string        // what keeps it alive: a lease, a session
	Left    time.Duration // until it ends unless it is renewed; zero if unknown
	Waiting int           // how many wait in its line; negative if unknown

	Why    string // it matters
	Advice string // which option coexists with it, or that none does
}

// Hidden reports whether somebody holds the lock and the candidates of the store's
// URL would not know.
func (l Lock) Hidden() bool { return l.Held && !l.Here && !l.Excludes }

// String says in one line what the lock looks like and who holds it.
func (l Lock) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "at %.200q: ", l.Key)
	if !l.Ours {
		b.WriteString("looks like ")
	}
	b.WriteString(l.Kind)
	switch {
	case l.Stuck:
		b.WriteString(", which nothing ends by itself")
	case !l.Held:
		b.WriteString(", not held")
	case l.Left > 0:
		fmt.Fprintf(&b, ", ends in %v unless it is renewed", l.Left.Round(100*time.Millisecond))
	}
	if l.Holder != "" {
		b.WriteString(", " + l.Holder)
	}
	if l.Value != "" {
		fmt.Fprintf(&b, ", value %s", quoted(l.Value))
	}
	if l.Waiting >= 0 {
		fmt.Fprintf(&b, ", %d waiting", l.Waiting)
	}
	return b.String()
}

// quoted shows a value that may be anything.
func quoted(value string) string {
	const most = 120
	if len(value) > most {
		return fmt.Sprintf("%q…", value[:most])
	}
	return fmt.Sprintf("%q", value)
}

// A Layout says at which keys of an etcd the records are, as the parameter of a URL has it.
type Layout string

// The layouts.
const (
	OneKey Layout = "key"   // of etcdkv.OneKey
	Queue  Layout = "queue" // of etcdkv.NewQueue
	Claim  Layout = "claim" // of etcdkv.Claim
)

// A View is where the candidates of a URL keep the records of a server, and what they
// take for a record.
type View struct {
	Prefix, Suffix string // around a name, in its key
	Plain          bool
	Observed       bool   // observers judge when a record is over, not the store
	Layout         Layout // empty, but in an etcd

	// Store returns the store as it would be with these settings in its URL. Where
	// observers judge, plain means nothing.
	Store func(plain, observed bool, layout Layout) kv.Store
}

// Key returns what the store makes of a name: the key, or in a line of keys the part
// before the last slash.
func (v *View) Key(name string) string { return v.Prefix + name + v.Suffix }

// record is the Kind of what this library writes.
const record = "a record of an election"

// coexists is the Why of a lock that candidates of the URL respect.
const coexists = "it keeps candidates of this URL out, and they keep it out"

// nobodyElected is the Why of what is at the place of records.
const nobodyElected = "as long as it is there nobody can be elected"

// hidden is the Why of a lock that is elsewhere.
func hidden(key string) string {
	return fmt.Sprintf("candidates of this URL are at %.200q: they and its holder could lead at once", key)
}

// A verdict is what the store says of the record of a name.
type verdict struct {
	ours     bool
	plain    bool // with this setting
	observed bool // observers judge its expiry
	value    string
}

// ask asks the store what a name's safe holds: as the URL has it and, if that is
// foreign, with the other setting of plain, and of who judges expiry. The layout is
// etcd's.
func (v *View) ask(ctx context.Context, name string, layout Layout) (verdict, error) {
	oneKey := layout == OneKey // observers judge no other
	settings := []verdict{{plain: v.Plain, observed: v.Observed}, {plain: !v.Plain}}
	if oneKey {
		settings = append(settings, verdict{plain: v.Plain, observed: !v.Observed})
	}
	for _, s := range settings {
		rec, err := v.Store(s.plain, s.observed && oneKey, layout).Get(ctx, name)
		switch {
		case err == nil && !rec.Foreign:
			s.ours, s.value = true, rec.Value
			return s, nil
		case err != nil && !errors.Is(err, kv.ErrVacant) && !errors.Is(err, kv.ErrInvalid):
			return verdict{}, err
		}
	}
	return verdict{}, nil
}

// name completes a lock that is a record of ours. Where observers judge, nothing but
// they ends it, and they do.
func (v verdict) name(l *Lock) {
	l.Kind, l.Ours, l.Value = record, true, v.value
	if v.observed {
		l.Kind, l.Held, l.Stuck = record+", whose expiry candidates judge", true, false
		l.Why, l.Advice = "", "" // of a key without a lease or session
	}
}

// matters completes a record that is Here: whether the candidates of the URL take
// it for one depends on the parameters plain and expiry. remove is how to remove it.
func (v verdict) matters(l *Lock, view *View, remove string) {
	if v.observed != view.Observed {
		v.judged(l, remove)
		return
	}
	if v.plain == view.Plain {
		return
	}
	l.Limited = true
	l.Why = "candidates of this URL have another setting of plain: they take it for a foreign lock and wait"
	l.Advice = "give all candidates the same: leave plain out of the URL (Options.Plain)"
	if v.plain {
		l.Advice = "give all candidates the same: plain=true in the URL (Options.Plain)"
	}
}

// judged completes a record whose expiry others judge than the URL says.
func (v verdict) judged(l *Lock, remove string) {
	l.Limited = true
	l.Why = "candidates of this URL leave it to the store to judge expiry: they take it for a foreign lock and wait, though its leader may be dead"
	l.Advice = "give all candidates the same: expiry=observer in the URL (library: NewObserved); where none of those is left, remove it: " + remove
	if !v.observed {
		l.Why = "candidates of this URL judge expiry themselves: they take it for a foreign lock and wait"
		l.Advice = "give all candidates the same: leave expiry=observer out of the URL (library: New)"
	}
}
