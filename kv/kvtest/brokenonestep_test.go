package kvtest_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
)

var oneStepBreaches = []breach{
	{
		sentence: "a hand-over is made by a store that says that it cannot",
		noticed:  "a store that hands nothing over in one step says so",
		open: func(good *memkv.Store) kv.Store {
			return handing(good, func(ctx context.Context, o order) (kv.Record, error) {
				if _, err := o.to(ctx, good); err != nil {
					return kv.Record{}, err
				}
				return kv.Record{}, errors.ErrUnsupported
			})
		},
	},
	{
		sentence: "a hand-over in one step tells of the token of the heir's own record",
		noticed:  "a hand-over in one step replaces the record",
		open: func(good *memkv.Store) kv.Store {
			return handing(good, func(ctx context.Context, o order) (kv.Record, error) {
				rec, err := o.to(ctx, good)
				rec.Token = o.heir.Token
				return rec, err
			})
		},
	},
	{
		sentence: "the first hand-over in one step of a safe alone gives a token",
		noticed:  "tokens grow across hand-overs in one step",
		open: func(good *memkv.Store) kv.Store {
			var tokens sync.Map // the first of each safe
			return handing(good, func(ctx context.Context, o order) (kv.Record, error) {
				rec, err := o.to(ctx, good)
				if err == nil {
					first, _ := tokens.LoadOrStore(o.name, rec.Token)
					rec.Token = first.(uint64)
				}
				return rec, err
			})
		},
	},
	{
		sentence: "a hand-over in one step keeps the heir's note",
		noticed:  "a hand-over in one step puts the note given",
		open: func(good *memkv.Store) kv.Store {
			return handing(good, func(ctx context.Context, o order) (kv.Record, error) {
				o.note = o.heir.Note
				return o.to(ctx, good)
			})
		},
	},
	{
		sentence: "a hand-over in one step takes the heir's record out of its own safe",
		noticed:  "a hand-over in one step leaves the heir's own safe unharmed",
		open: func(good *memkv.Store) kv.Store {
			return handing(good, func(ctx context.Context, o order) (kv.Record, error) {
				rec, err := o.to(ctx, good)
				if err == nil {
					good.Remove(o.place)
				}
				return rec, err
			})
		},
	},
	{
		sentence: "a hand-over in one step empties the safe first",
		noticed:  "a watch sees a hand-over in one step",
		open: func(good *memkv.Store) kv.Store {
			return handing(good, func(ctx context.Context, o order) (kv.Record, error) {
				rec, err := o.to(ctx, good)
				if err != nil || good.Delete(ctx, o.name, rec) != nil {
					return rec, err
				}
				time.Sleep(time.Millisecond)
				return good.Create(ctx, o.name, rec)
			})
		},
	},
	{
		sentence: "a lease that was handed over in one step ends with the heir's own record",
		noticed:  "an heir that gives up its own safe keeps the one handed over in one step",
		open: func(good *memkv.Store) kv.Store {
			return revokingOne(good, func(o order) (string, string) { return o.place, o.name })
		},
	},
	{
		sentence: "a lease that was handed over in one step ends with the record handed over",
		noticed:  "an heir that gives up the safe handed over in one step keeps its own",
		open: func(good *memkv.Store) kv.Store {
			return revokingOne(good, func(o order) (string, string) { return o.name, o.place })
		},
	},
	{
		sentence: "a record handed over in one step has half a life",
		noticed:  "a record handed over in one step lives its time",
		open: func(good *memkv.Store) kv.Store {
			return handing(good, func(ctx context.Context, o order) (kv.Record, error) {
				ttl := o.heir.TTL
				o.heir.TTL = ttl / 2
				rec, err := o.to(ctx, good)
				rec.TTL = ttl
				return rec, err
			})
		},
	},
	{
		sentence: "a hand-over in one step refreshes the heir's own record",
		noticed:  "hand-overs in one step do not keep an heir alive",
		open: func(good *memkv.Store) kv.Store {
			return handing(good, func(ctx context.Context, o order) (kv.Record, error) {
				rec, err := o.to(ctx, good)
				if err == nil {
					_, err = good.Refresh(ctx, o.place, o.heir)
				}
				return rec, err
			})
		},
	},
	{
		sentence: "a hand-over in one step does not look into the heir's safe",
		noticed:  "nothing is handed over in one step to an heir whose safe is vacant",
		open:     func(good *memkv.Store) kv.Store { return handing(good, regardless(good)) },
	},
	{
		sentence: "a hand-over in one step does not see that the heir has faded",
		noticed:  "nothing is handed over in one step to an heir that has faded",
		open:     func(good *memkv.Store) kv.Store { return handing(good, regardless(good)) },
	},
	{
		sentence: "a hand-over in one step goes to whoever is heir",
		noticed:  "nothing is handed over in one step to another than the heir",
		open: func(good *memkv.Store) kv.Store {
			return handing(good, func(ctx context.Context, o order) (kv.Record, error) {
				if now, err := good.Get(ctx, o.place); err == nil && !o.heir.Foreign && o.heir.Signature != "" {
					o.heir = now
				}
				return o.to(ctx, good)
			})
		},
	},
	{
		sentence: "a hand-over in one step does not look at the heir's revision",
		noticed:  "nothing is handed over in one step to an heir whose record has changed",
		open: func(good *memkv.Store) kv.Store {
			return handing(good, func(ctx context.Context, o order) (kv.Record, error) {
				if now, err := good.Get(ctx, o.place); err == nil && now.Owns(o.heir) {
					o.heir.Revision = now.Revision
				}
				return o.to(ctx, good)
			})
		},
	},
	{
		sentence: "a hand-over in one step looks at the heir's signature alone",
		noticed:  "nothing is handed over in one step to an heir whose signature has come back",
		open: func(good *memkv.Store) kv.Store {
			return handing(good, func(ctx context.Context, o order) (kv.Record, error) {
				if now, err := good.Get(ctx, o.place); err == nil && now.Signature == o.heir.Signature {
					o.heir = now
				}
				return o.to(ctx, good)
			})
		},
	},
	{
		sentence: "a hand-over in one step does not look at the revision",
		noticed:  "a hand-over in one step at an old revision is refused",
		open: func(good *memkv.Store) kv.Store {
			return handing(good, func(ctx context.Context, o order) (kv.Record, error) {
				if now, err := good.Get(ctx, o.name); err == nil && now.Owns(o.old) {
					o.old.Revision = now.Revision
				}
				return o.to(ctx, good)
			})
		},
	},
	{
		sentence: "a hand-over in one step replaces whoever is there",
		noticed:  "a hand-over in one step of what the safe does not hold is refused",
		open: func(good *memkv.Store) kv.Store {
			return handing(good, func(ctx context.Context, o order) (kv.Record, error) {
				if now, err := good.Get(ctx, o.name); err == nil && !now.Foreign {
					o.old = now
				}
				return o.to(ctx, good)
			})
		},
	},
	{
		sentence: "a hand-over in one step that can never be is refused as if it was late",
		noticed:  "a hand-over in one step that can never be is invalid",
		open: func(good *memkv.Store) kv.Store {
			return handing(good, func(ctx context.Context, o order) (kv.Record, error) {
				rec, err := o.to(ctx, good)
				if errors.Is(err, kv.ErrInvalid) {
					err = kv.ErrStale
				}
				return rec, err
			})
		},
	},
	{
		sentence: "a hand-over in one step overwrites a lock",
		noticed:  "a hand-over in one step to somebody else's lock is invalid",
		open: func(good *memkv.Store) kv.Store {
			return handing(good, func(ctx context.Context, o order) (kv.Record, error) {
				if now, err := good.Get(ctx, o.name); err == nil && now.Foreign {
					good.Remove(o.name)
					return good.Create(ctx, o.name, o.heir)
				}
				return o.to(ctx, good)
			})
		},
	},
	{
		sentence: "a hand-over in one step does not look at its context",
		noticed:  "a hand-over in one step whose context has ended returns promptly",
		open: func(good *memkv.Store) kv.Store {
			return handing(good, func(ctx context.Context, o order) (kv.Record, error) {
				return o.to(context.WithoutCancel(ctx), good)
			})
		},
	},
	{
		sentence: "hand-overs in one step at one revision follow each other",
		noticed:  "one of many hand-overs in one step wins",
		open: func(good *memkv.Store) kv.Store {
			return handing(good, func(ctx context.Context, o order) (kv.Record, error) {
				rec, err := o.to(ctx, good)
				if now, none := good.Get(ctx, o.name); errors.Is(err, kv.ErrStale) && none == nil && now.Signature == o.heir.Signature {
					return now, nil
				}
				return rec, err
			})
		},
	},
	{
		sentence: "a hand-over in one step looks at the heir first and writes then",
		noticed:  "a hand-over in one step to an heir that gives up meanwhile holds or is refused",
		open: func(good *memkv.Store) kv.Store {
			return handing(good, func(ctx context.Context, o order) (kv.Record, error) {
				if now, err := good.Get(ctx, o.place); err != nil || now != o.heir {
					return o.to(ctx, good)
				}
				time.Sleep(time.Millisecond)
				return regardless(good)(ctx, o)
			})
		},
	},
	{
		sentence: "a hand-over in one step jumps the line",
		noticed:  "nobody jumps the line in one step",
		line: func(good *memkv.Queue) kv.Store {
			return inLine(good, handing(&good.Store, func(ctx context.Context, o order) (kv.Record, error) {
				rec, err := o.to(ctx, good)
				if errors.Is(err, kv.ErrStale) && good.Delete(ctx, o.name, o.old) == nil {
					return good.Join(ctx, o.name, o.heir)
				}
				return rec, err
			}))
		},
	},
	{
		sentence: "whoever is in line is an heir",
		noticed:  "an heir is first in its own line",
		line: func(good *memkv.Queue) kv.Store {
			return inLine(good, handing(&good.Store, func(ctx context.Context, o order) (kv.Record, error) {
				if _, _, err := good.Stay(ctx, o.place, o.heir); err == nil {
					return regardless(&good.Store)(ctx, o)
				}
				return o.to(ctx, good)
			}))
		},
	},
}

// An order is what a hand-over in one step is asked to do.
type order struct {
	name  string
	old   kv.Record
	place string
	heir  kv.Record
	note  string
}

// to has a store carry the order out.
func (o order) to(ctx context.Context, s kv.HandOver) (kv.Record, error) {
	return s.HandOver(ctx, o.name, o.old, o.place, o.heir, o.note)
}

// handing is a good store that hands over in one step as it is told here.
func handing(good *memkv.Store, do func(context.Context, order) (kv.Record, error)) *broken {
	return &broken{Store: good, whole: func(ctx context.Context, name string, old kv.Record, place string, heir kv.Record, note string) (kv.Record, error) {
		return do(ctx, order{name, old, place, heir, note})
	}}
}

// regardless hands over whatever the heir's safe holds, where that can be at all.
func regardless(good *memkv.Store) func(context.Context, order) (kv.Record, error) {
	return func(ctx context.Context, o order) (kv.Record, error) {
		if o.heir.Foreign || o.heir.Signature == "" || o.heir.Signature == o.old.Signature || o.place == "" {
			return o.to(ctx, good)
		}
		next := o.heir
		next.Note = o.note
		return good.Swap(ctx, o.name, o.old, next)
	}
}

// revokingOne empties the second of two safes when the first is, once that was handed
// over to one owner in one step.
func revokingOne(good *memkv.Store, both func(order) (first, second string)) kv.Store {
	var shared sync.Map // the second safe, by the first
	b := &broken{Store: good}
	b.whole = func(ctx context.Context, name string, old kv.Record, place string, heir kv.Record, note string) (kv.Record, error) {
		o := order{name, old, place, heir, note}
		rec, err := o.to(ctx, good)
		if err == nil {
			first, second := both(o)
			shared.Store(first, second)
		}
		return rec, err
	}
	b.delete = func(ctx context.Context, name string, rec kv.Record) error {
		err := good.Delete(ctx, name, rec)
		if second, ok := shared.Load(name); ok && err == nil {
			good.Remove(second.(string))
		}
		return err
	}
	return b
}
