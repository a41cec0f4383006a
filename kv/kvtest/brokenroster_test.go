package kvtest_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
)

func (b *broken) Members(ctx context.Context, name string, most int) ([]kv.Held, uint64, error) {
	if b.members != nil {
		return b.members(ctx, name, most)
	}
	return b.Store.Members(ctx, name, most)
}

func (b *broken) AwaitMembers(ctx context.Context, name string, version uint64) error {
	if b.await != nil {
		return b.await(ctx, name, version)
	}
	return b.Store.AwaitMembers(ctx, name, version)
}

// listing breaks what a roster lists.
func listing(change func(all []kv.Held) []kv.Held) func(*memkv.Store) kv.Store {
	return func(good *memkv.Store) kv.Store {
		return &broken{Store: good, members: func(ctx context.Context, name string, most int) ([]kv.Held, uint64, error) {
			all, version, err := good.Members(ctx, name, most)
			return change(all), version, err
		}}
	}
}

func ofMember(name string) bool {
	_, _, ok := kv.MemberOf(name)
	return ok
}

var rosterBreaches = []breach{
	{
		sentence: "a roster lists a part of its members",
		noticed:  "a roster lists its members",
		open:     listing(func(all []kv.Held) []kv.Held { return all[:min(2, len(all))] }),
	},
	{
		sentence: "a roster of many is cut after a page",
		noticed:  "a roster of many is listed whole",
		open:     listing(func(all []kv.Held) []kv.Held { return all[:min(500, len(all))] }),
	},
	{
		sentence: "a roster that nobody has entered has a member",
		noticed:  "a roster that nobody has entered is empty",
		open: listing(func(all []kv.Held) []kv.Held {
			return append(all, kv.Held{Name: "nobody"})
		}),
	},
	{
		sentence: "a roster lists who was ever there",
		noticed:  "a roster does not list members that have left",
		open: func(good *memkv.Store) kv.Store {
			var mu sync.Mutex
			gone := map[string][]kv.Held{}
			return &broken{
				Store: good,
				delete: func(ctx context.Context, name string, rec kv.Record) error {
					mu.Lock()
					defer mu.Unlock()
					if roster, _, ok := kv.MemberOf(name); ok {
						gone[roster] = append(gone[roster], kv.Held{Name: name, Record: rec})
					}
					return good.Delete(ctx, name, rec)
				},
				members: func(ctx context.Context, name string, most int) ([]kv.Held, uint64, error) {
					mu.Lock()
					defer mu.Unlock()
					all, version, err := good.Members(ctx, name, most)
					return append(all, gone[name]...), version, err
				},
			}
		},
	},
	{
		sentence: "members fade early",
		noticed:  "a member that is not refreshed fades from its roster, in time and not early",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				ttl := rec.TTL
				if ofMember(name) {
					rec.TTL /= 2
				}
				rec, err := good.Create(ctx, name, rec)
				rec.TTL = ttl
				return rec, err
			}}
		},
	},
	{
		sentence: "a refresh of a member does nothing",
		noticed:  "a member that is refreshed stays in its roster",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, refresh: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				if ofMember(name) {
					return good.Get(ctx, name)
				}
				return good.Refresh(ctx, name, rec)
			}}
		},
	},
	{
		sentence: "the members of one process are refreshed as one",
		noticed:  "members that share a lease stay in the roster, each for itself",
		open: each(func(r kv.Held, rec kv.Record, err error) (kv.Record, error) {
			if errors.Is(err, kv.ErrStale) && ofMember(r.Name) {
				return r.Record, nil
			}
			return rec, err
		}),
	},
	{
		sentence: "a roster lists those of a longer name",
		noticed:  "rosters of other names are kept apart",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, members: func(ctx context.Context, name string, most int) ([]kv.Held, uint64, error) {
				all, version, err := good.Members(ctx, name, most)
				more, _, _ := good.Members(ctx, name+"x", most)
				return append(all, more...), version, err
			}}
		},
	},
	{
		sentence: "a roster lists what is beside it",
		noticed:  "what is beside a roster is not listed",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, members: func(ctx context.Context, name string, most int) ([]kv.Held, uint64, error) {
				all, version, err := good.Members(ctx, name, most)
				if rec, other := good.Get(ctx, name+":rosters:a"); other == nil {
					all = append(all, kv.Held{Name: name, Record: rec})
				}
				return all, version, err
			}}
		},
	},
	{
		sentence: "each member's tokens grow by themselves",
		noticed:  "tokens grow across all members of a roster",
		open:     numbering(func(_ string, last uint64) uint64 { return last }, false),
	},
	{
		sentence: "a roster that is empty forgets its tokens",
		noticed:  "tokens grow after all members of a roster are gone",
		open:     numbering(func(roster string, last uint64) uint64 { return last + 1 }, true),
	},
	{
		sentence: "members that enter at once get one token",
		noticed:  "members that enter at once have tokens of their own",
		open: func(good *memkv.Store) kv.Store {
			var last atomic.Uint64
			tokens := &sync.Map{}
			b := renumbered(good, tokens)
			b.create = func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				rec, err := good.Create(ctx, name, rec)
				if err == nil && ofMember(name) {
					next := last.Load() + 1
					time.Sleep(time.Millisecond)
					last.Store(next)
					tokens.Store(name, next)
					rec.Token = next
				}
				return rec, err
			}
			return b
		},
	},
	{
		sentence: "a roster loses the bytes of values",
		noticed:  "a member's values come back from its roster",
		open: listing(func(all []kv.Held) []kv.Held {
			for i := range all {
				all[i].Record.Value = strings.ToValidUTF8(all[i].Record.Value, "?")
			}
			return all
		}),
	},
	{
		sentence: "a roster passes over what somebody else has put there",
		noticed:  "a roster reports what somebody else has put there, and leaves it alone",
		open: listing(func(all []kv.Held) []kv.Held {
			var own []kv.Held
			for _, h := range all {
				if !h.Record.Foreign {
					own = append(own, h)
				}
			}
			return own
		}),
	},
	{
		sentence: "a roster heeds no bound",
		noticed:  "a roster lists no more than it is asked for",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, members: func(ctx context.Context, name string, _ int) ([]kv.Held, uint64, error) {
				return good.Members(ctx, name, math.MaxInt)
			}}
		},
	},
	{
		sentence: "nobody hears of changes of a roster",
		noticed:  "a wait for a change of a roster hears of it",
		open: awaiting(func(ctx context.Context, _ *memkv.Store, _ string, _ uint64) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}),
	},
	{
		sentence: "a wait for a change of a roster misses one that came before",
		noticed:  "a wait for a change of a roster hears of one that came before",
		open: awaiting(func(ctx context.Context, good *memkv.Store, name string, _ uint64) error {
			_, version, err := good.Members(ctx, name, 1)
			if err != nil {
				return err
			}
			return good.AwaitMembers(ctx, name, version)
		}),
	},
	{
		sentence: "a record that fades is no change of a roster",
		noticed:  "a wait for a change of a roster hears that a record has faded",
		open: awaiting(func(ctx context.Context, good *memkv.Store, name string, version uint64) error {
			for {
				before, _, err := good.Members(ctx, name, 10)
				if err != nil {
					return err
				}
				if err := good.AwaitMembers(ctx, name, version); err != nil {
					return err
				}
				after, now, err := good.Members(ctx, name, 10)
				if err != nil || len(after) != 0 || len(before) == 0 || before[0].Record.TTL > time.Minute {
					return err
				}
				version = now
			}
		}),
	},
	{
		sentence: "a roster is listed when its caller has left",
		noticed:  "a roster's operations whose context has ended return promptly",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, members: func(ctx context.Context, name string, most int) ([]kv.Held, uint64, error) {
				return good.Members(context.WithoutCancel(ctx), name, most)
			}}
		},
	},
	{
		sentence: "a roster without a name is listed",
		noticed:  "a roster needs a name",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, members: func(ctx context.Context, name string, most int) ([]kv.Held, uint64, error) {
				if name == "" {
					return nil, 0, nil
				}
				return good.Members(ctx, name, most)
			}}
		},
	},
}

func awaiting(await func(ctx context.Context, good *memkv.Store, name string, version uint64) error) func(*memkv.Store) kv.Store {
	return func(good *memkv.Store) kv.Store {
		return &broken{Store: good, await: func(ctx context.Context, name string, version uint64) error {
			if name == "" {
				return good.AwaitMembers(ctx, name, version)
			}
			return await(ctx, good, name, version)
		}}
	}
}

// renumbered is a store in which members have other tokens, by the names of their safes.
func renumbered(good *memkv.Store, tokens *sync.Map) *broken {
	own := func(name string, rec kv.Record) kv.Record {
		if token, ok := tokens.Load(name); ok && !rec.Foreign {
			rec.Token = token.(uint64)
		}
		return rec
	}
	genuine := func(ctx context.Context, name string, rec kv.Record) kv.Record {
		now, err := good.Get(ctx, name)
		if err == nil && own(name, now).Owns(rec) {
			rec.Token = now.Token
		}
		return rec
	}
	return &broken{
		Store: good,
		get: func(ctx context.Context, name string) (kv.Record, error) {
			rec, err := good.Get(ctx, name)
			return own(name, rec), err
		},
		refresh: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
			rec, err := good.Refresh(ctx, name, genuine(ctx, name, rec))
			return own(name, rec), err
		},
		delete: func(ctx context.Context, name string, rec kv.Record) error {
			return good.Delete(ctx, name, genuine(ctx, name, rec))
		},
		members: func(ctx context.Context, name string, most int) ([]kv.Held, uint64, error) {
			all, version, err := good.Members(ctx, name, most)
			for i := range all {
				all[i].Record = own(all[i].Name, all[i].Record)
			}
			return all, version, err
		},
	}
}

// numbering draws the tokens of members from the last one of their roster, which is forgotten,
// if it forgets, when the roster is empty.
func numbering(next func(roster string, last uint64) uint64, forgets bool) func(*memkv.Store) kv.Store {
	return func(good *memkv.Store) kv.Store {
		tokens := &sync.Map{}
		var mu sync.Mutex
		last := map[string]uint64{}
		b := renumbered(good, tokens)
		b.create = func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
			roster, _, ok := kv.MemberOf(name)
			if !ok {
				return good.Create(ctx, name, rec)
			}
			mu.Lock()
			defer mu.Unlock()
			if all, _, err := good.Members(ctx, roster, 1); err == nil && len(all) == 0 && forgets {
				delete(last, roster)
			}
			rec, err := good.Create(ctx, name, rec)
			if err == nil {
				last[roster] = max(next(roster, last[roster]), 1)
				rec.Token = last[roster]
				tokens.Store(name, rec.Token)
			}
			return rec, err
		}
		return b
	}
}

func TestAStoreWithoutRostersSkipsTheCases(t *testing.T) {
	b, store := memory(memkv.New()), memkv.New()
	b.Open = func(testing.TB) kv.Store { return struct{ kv.Store }{store} }
	requireSkipped(t, b, rosterBreaches, 20)
}
