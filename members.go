package election

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/kv"
)

// A Member is a candidate or an observer of an election, as the roster shows it.
// Members can be compared with ==.
type Member struct {
	ID    string // the candidate's Options.ID; empty if foreign
	Value string // its Options.Value, or what it published last as leader; at most 64 KiB
	Rank  int    // its Options.Rank
	Role  Role   // RoleLeader, RoleHeir, RoleCandidate or RoleObserver; empty if foreign

	// Since is when it came, by its own wall clock. Zero if unknown.
	Since time.Time

	// Number orders the members: one that came later has a larger number, also across restarts
	// of all processes and of the store, as far as the store's tokens do (see the Guarantees of
	// each). A record that was lost and entered again has another number. It is zero for a
	// leader or heir that keeps no record in the roster, and may be zero if foreign.
	Number uint64

	// Safe is the name of the safe that holds the member's record. It is empty for a leader or
	// heir that keeps no record in the roster.
	Safe string

	// Foreign is set if a record in the roster was not written by this library, or says what no
	// candidate can be. It is left alone. Value is then the beginning of what was written, and
	// may be any bytes, as may Safe.
	Foreign bool
}

// mostMembers is how many records of a roster are read at most.
const mostMembers = 1 << 14

// Members returns who takes part in the election called name: the leader, the heir, the
// candidates that wait and the observers, in the order in which they came. Those that keep no
// record (Options.Roster, [Candidate.Attend]) are not in it, except for the leader and the heir.
// A process that died is gone after its TTL; kv.Lifetime says how long that may take. Two
// processes with the same ID are two members. Foreign records come last.
//
// It reads the roster, then the leader's record, then the heir's: for a moment after a change,
// roles may be those of different moments. The error says so if the store keeps no rosters, and
// if there are more than 16384 records.
func Members(ctx context.Context, store kv.Store, name string) ([]Member, error) {
	all, _, err := membersOf(ctx, store, name)
	return all, err
}

func membersOf(ctx context.Context, store kv.Store, name string) (all []Member, version uint64, err error) {
	if err := checkReserved(name); err != nil {
		return nil, 0, err
	}
	if err := checkRoster(store); err != nil {
		return nil, 0, err
	}
	held, version, err := store.(kv.Roster).Members(ctx, name, mostMembers+1)
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("election: members of %q: %w", name, err)
	case len(held) > mostMembers:
		return nil, version, fmt.Errorf("election: members of %q: %w", name, errManyMembers)
	}
	var roles [2]kv.Record
	for i, safe := range []string{name, heirSafe(name)} {
		roles[i], err = store.Get(ctx, safe)
		if err != nil && !errors.Is(err, kv.ErrVacant) {
			return nil, 0, fmt.Errorf("election: members of %q: %w", name, err)
		}
	}
	return combine(held, roles[0], roles[1]), version, nil
}

// errManyMembers is why a roster is not shown.
var errManyMembers = fmt.Errorf("there are more than %d records, the most that can be listed", mostMembers)

// combine returns the members of a roster, with their roles.
func combine(held []kv.Held, leader, heir kv.Record) []Member {
	all := make([]Member, 0, len(held)+2)
	type candidate struct{ id, tag string }
	listed := make(map[candidate]int, len(held))
	for _, h := range held {
		m := memberOf(h)
		if tag := tagOf(h.Record.Signature); !m.Foreign && m.Role != RoleObserver && tag != "" {
			listed[candidate{m.ID, tag}] = len(all)
		}
		all = append(all, m)
	}
	cast := func(rec kv.Record, role Role) {
		id := machine.IDOf(rec.Signature)
		if rec.Foreign || checkText("ID", id) != nil {
			return
		}
		i, ok := listed[candidate{id, tagOf(rec.Signature)}]
		if !ok {
			n := machine.NoteOf(rec)
			i = len(all)
			all = append(all, Member{ID: id, Rank: n.Rank, Since: dateOf(n.Since)})
		}
		if all[i].Role != RoleLeader {
			all[i].Role, all[i].Value = role, rec.Value[:min(len(rec.Value), maxValue)]
		}
	}
	cast(leader, RoleLeader)
	if n := machine.NoteOf(heir); n.Calls == "" && heir.Signature != leader.Signature {
		cast(heir, RoleHeir)
	}
	slices.SortStableFunc(all, func(a, b Member) int {
		switch {
		case a.Foreign != b.Foreign && a.Foreign:
			return 1
		case a.Foreign != b.Foreign:
			return -1
		}
		return cmp.Or(cmp.Compare(a.Number, b.Number), strings.Compare(a.Safe, b.Safe))
	})
	return all
}

// memberOf returns what a record in a roster says. One that no candidate can have written is
// foreign: the key is part of the signature of its record.
func memberOf(h kv.Held) Member {
	rec, id := h.Record, machine.IDOf(h.Record.Signature)
	_, key, ok := kv.MemberOf(h.Name)
	var n memberNote
	if rec.Foreign || !ok || rec.Signature != id+"/"+key || len(rec.Value) > maxValue || checkText("ID", id) != nil || json.Unmarshal([]byte(rec.Note), &n) != nil {
		return Member{Value: rec.Value[:min(len(rec.Value), 1<<10)], Number: rec.Token, Safe: h.Name[:min(len(h.Name), 4<<10)], Foreign: true}
	}
	m := Member{ID: id, Value: rec.Value, Rank: n.Rank, Role: RoleCandidate, Since: dateOf(n.Since), Number: rec.Token, Safe: h.Name}
	if n.Observes {
		m.Role = RoleObserver
	}
	return m
}

// dateOf returns a time that a record names, zero if it names none, or one that nobody can mean.
func dateOf(ms int64) time.Time {
	if at := time.UnixMilli(ms); ms > 0 && at.Year() < 10_000 {
		return at
	}
	return time.Time{}
}

// restOfMembers is the shortest time between two readings of WatchMembers.
const restOfMembers = 250 * time.Millisecond

// WatchMembers yields what [Members] returns: the present state first, then again after changes,
// merged if they come fast or if the reader is slow. The reader may keep and change the slice.
//
// While there is trouble with the store, WatchMembers yields the error and nil, at most a few
// times per second, and goes on. It ends when ctx has ended or the store can never do what is
// asked, and yields ctx's cause or the reason last.
//
// Its cost: a watch of the leader's safe and one of the heir's; what AwaitMembers of the store
// takes (in etcd a watch, in Consul a blocking query, in Redis nothing); and for each change
// one call of Members, as well as every two seconds in Redis. It reads no more often than four
// times per second, and for no more than a fifth of the time.
func WatchMembers(ctx context.Context, store kv.Store, name string) iter.Seq2[[]Member, error] {
	return func(yield func([]Member, error) bool) {
		if err := errors.Join(checkReserved(name), checkRoster(store)); err != nil {
			yield(nil, err)
			return
		}
		inner, stop := context.WithCancel(ctx)
		w := &memberWatch{store: store, name: name, hint: make(chan struct{}, 1)}
		for _, safe := range []string{name, heirSafe(name)} {
			defer w.follow(inner, safe)()
		}
		defer stop() // before they are waited for, also if the reader panics
		w.run(ctx, yield)
	}
}

// A memberWatch tells an observer of the changes of a roster.
type memberWatch struct {
	store kv.Store
	name  string
	hint  chan struct{} // something may have changed
}

// follow hints at changes of a safe until ctx ends, for which the returned function waits.
func (w *memberWatch) follow(ctx context.Context, safe string) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			for _, err := range w.store.Watch(ctx, safe) {
				if err == nil || errors.Is(err, kv.ErrVacant) {
					w.stir()
				}
			}
			sleep(ctx, watchPause)
		}
	}()
	return func() { <-done }
}

func (w *memberWatch) stir() {
	select {
	case w.hint <- struct{}{}:
	default:
	}
}

func (w *memberWatch) run(ctx context.Context, yield func([]Member, error) bool) {
	retry := backoff{least: watchPause / 8, most: watchPause, jitter: rand.N[time.Duration]}
	var last []Member
	known := false
	for {
		began := time.Now()
		all, version, err := membersOf(ctx, w.store, w.name)
		took := time.Since(began)
		switch {
		case ctx.Err() != nil:
			yield(nil, fmt.Errorf("election: watch members of %q: %w", w.name, context.Cause(ctx)))
			return
		case err != nil:
			known = false
			if !yield(nil, err) || errors.Is(err, kv.ErrInvalid) {
				return
			}
			sleep(ctx, retry.pause())
			continue
		case !known || !slices.Equal(all, last):
			known, last = true, all
			if !yield(slices.Clone(all), nil) {
				return
			}
		}
		sleep(ctx, max(restOfMembers, 4*took))
		if w.await(ctx, version) != nil {
			sleep(ctx, retry.pause())
		} else {
			retry.reset()
		}
	}
}

// await returns when something may have changed since a reading, or ctx has ended.
func (w *memberWatch) await(ctx context.Context, version uint64) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	over := make(chan struct{})
	var err error
	go func() {
		defer close(over)
		err = w.store.(kv.Roster).AwaitMembers(ctx, w.name, version)
	}()
	select {
	case <-over:
		return err
	case <-w.hint:
		stop()
		<-over
		return nil
	}
}
