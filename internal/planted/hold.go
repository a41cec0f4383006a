package planted

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/internal/mistake"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
)

const (
	ttl  = 10 * time.Second
	hold = 60 * time.Second
)

var errStore = errors.New("store: connection reset")

// holdMistakes are stores that make of the engine one with a mistake about holds.
var holdMistakes = map[string]func(kv.Store) kv.Store{
	"work begins without a hold": func(s kv.Store) kv.Store {
		return &mistaken{Store: s, create: func(_ context.Context, _ string, rec kv.Record) (kv.Record, error) {
			rec.Token, rec.Revision, rec.Lasting = 1, 1, false
			return rec, nil
		}}
	},
	"an unclear answer is taken for a hold": func(s kv.Store) kv.Store {
		return &mistaken{Store: s, create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
			got, err := s.Create(ctx, name, rec)
			if err != nil && !errors.Is(err, kv.ErrHeld) {
				rec.Token, rec.Revision, rec.Lasting = 1, 1, false
				return rec, nil
			}
			return got, nil
		}}
	},
	"a hold is deleted with the leader's record": func(s kv.Store) kv.Store {
		return &mistaken{Store: s, delete: func(ctx context.Context, name string, rec kv.Record) error {
			err := s.Delete(ctx, name, rec)
			if h, lookErr := s.Get(ctx, name+":hold"); lookErr == nil {
				_ = s.Delete(ctx, name+":hold", h)
			}
			return err
		}}
	},
	"a hold lives as long as a leader's record": func(s kv.Store) kv.Store {
		return &mistaken{Store: s, create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
			asked := rec.TTL
			rec.TTL = ttl
			got, err := s.Create(ctx, name, rec)
			got.TTL = asked
			return got, err
		}}
	},
	"another's hold is taken for one's own": func(s kv.Store) kv.Store {
		return &mistaken{Store: s, create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
			if got, err := s.Get(ctx, name); err == nil {
				got.TTL = rec.TTL
				return got, nil
			}
			return s.Create(ctx, name, rec)
		}}
	},
}

// A mistaken store goes wrong where holds are made, or leaders' records deleted.
type mistaken struct {
	kv.Store
	create func(context.Context, string, kv.Record) (kv.Record, error)
	delete func(context.Context, string, kv.Record) error
}

// Create implements [kv.Store].
func (m *mistaken) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	if m.create != nil && strings.HasSuffix(name, ":hold") {
		return m.create(ctx, name, rec)
	}
	return m.Store.Create(ctx, name, rec)
}

// Delete implements [kv.Store].
func (m *mistaken) Delete(ctx context.Context, name string, rec kv.Record) error {
	if m.delete != nil && !strings.HasSuffix(name, ":hold") {
		return m.delete(ctx, name, rec)
	}
	return m.Store.Delete(ctx, name, rec)
}

// holdStory has four candidates stand again and again, waiting and not, on links that
// fail, while leaders die. It returns when work began.
func holdStory(t *testing.T, seed uint64, mistake func(kv.Store) kv.Store) (begins []time.Time) {
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		ctx, cancel := context.WithTimeout(t.Context(), 20*hold)
		defer cancel()
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range uint64(4) {
			draw := rand.New(rand.NewPCG(seed, i))
			all.Go(func() {
				for ctx.Err() == nil {
					link := kvfault.Wrap(store)
					view := link.Store
					if mistake != nil {
						view = mistake(link.Store)
					}
					c, err := election.New(view, "e", &election.Options{ID: fmt.Sprint(i), TTL: ttl, Hold: hold})
					require.NoError(t, err)
					life, die := context.WithCancel(ctx)
					go trouble(life, link, rand.New(rand.NewPCG(draw.Uint64(), draw.Uint64())))
					lasts := time.Duration(draw.IntN(2)) * time.Duration(draw.Int64N(int64(2*hold)))
					work := func(ctx context.Context, term *election.Term) error {
						enough := time.NewTimer(lasts)
						defer enough.Stop()
						if term.Err() == nil {
							mu.Lock()
							begins = append(begins, time.Now())
							mu.Unlock()
						}
						select {
						case <-ctx.Done():
						case <-enough.C:
						}
						return nil
					}
					if draw.IntN(4) == 0 { // it dies at some point
						time.AfterFunc(time.Duration(draw.Int64N(int64(hold))), func() {
							link.On().DropRequests()
							die()
						})
					}
					if draw.IntN(2) == 0 {
						_ = c.Run(life, work)
					} else {
						_ = c.TryRun(life, work)
					}
					die()
					time.Sleep(time.Duration(draw.Int64N(int64(hold))))
				}
			})
		}
		all.Wait()
		time.Sleep(2 * hold)
	})
	sort.Slice(begins, func(i, j int) bool { return begins[i].Before(begins[j]) })
	return begins
}

// trouble strikes a link now and then until ctx ends.
func trouble(ctx context.Context, link *kvfault.Link, draw *rand.Rand) {
	ops := []kvfault.Op{kvfault.Create, kvfault.Create, kvfault.Refresh, kvfault.Delete, kvfault.Get, kvfault.Watch}
	for ctx.Err() == nil {
		time.Sleep(time.Duration(draw.Int64N(int64(ttl))))
		if ctx.Err() != nil {
			return
		}
		f := link.On(ops[draw.IntN(len(ops))])
		switch draw.IntN(7) {
		case 0:
			f.DropRequests()
		case 1:
			f.DropReplies()
		case 2:
			f.Fail(errStore)
		case 3:
			f.FailReplies(errStore)
		case 4:
			f.Withhold()
		case 5:
			f.DelayReplies(ttl / 5)
		default:
			link.Heal()
			link.Deliver(ctx)
		}
	}
}

// tooSoon returns the first beginning that came less than a hold after the last one.
func tooSoon(begins []time.Time) error {
	for i := 1; i < len(begins); i++ {
		if gap := begins[i].Sub(begins[i-1]); gap < hold {
			return fmt.Errorf("work began %v after the last, %d of %d", gap, i, len(begins))
		}
	}
	return nil
}

const holdStories = 60

// KeepHolds shows that work begins once per hold, whatever fails.
func KeepHolds(t *testing.T) {
	began := 0
	for seed := range uint64(holdStories) {
		begins := holdStory(t, seed, nil)
		require.NoError(t, tooSoon(begins), "seed %d", seed)
		began += len(begins)
	}
	require.Greater(t, began, 4*holdStories, "most stories are worth telling")
	t.Logf("work began %d times", began)
}

// CatchEachAboutHolds shows that those stories catch each mistake about holds.
func CatchEachAboutHolds(t *testing.T) {
	for what, made := range holdMistakes {
		t.Run(what, func(t *testing.T) {
			for seed := range uint64(holdStories) {
				if err := tooSoon(holdStory(t, seed, made)); err != nil {
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			mistake.Missed(t, fmt.Sprintf("none of %d stories shows it", holdStories))
		})
	}
}
