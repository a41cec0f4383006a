package engine_test

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/internal/views"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
)

// A ghost keeps the safe and never leads. In these tests a has some trouble of
// its own; b is well, and has to lead some time.

func TestACandidateThatLearnsNothingOfItsWritesKeepsNobodyOut(t *testing.T) {
	for name, fault := range map[string]func(*kvfault.Link){
		"replies lost": func(f *kvfault.Link) { f.On(kvfault.Create, kvfault.Refresh).DropReplies() },
		"replies slow": func(f *kvfault.Link) {
			f.On(kvfault.Create, kvfault.Refresh, kvfault.Delete).DelayReplies(ttl * 35 / 100)
		},
		"writes late": func(f *kvfault.Link) { f.On(kvfault.Create, kvfault.Refresh).DelayRequests(ttl * 29 / 100) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, b := memkv.New(), newBallot(t)
				faults := kvfault.Wrap(store)
				fault(faults)
				b.run(b.candidate(faults.Store, "a"), "a")
				time.Sleep(ttl / 100)
				b.run(b.candidate(store, "b"), "b")
				time.Sleep(100 * ttl)
				require.Contains(t, b.leaders(), "b")
			})
		})
	}
}

func TestACandidateWhoseWatchHangsKeepsNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		faults := kvfault.Wrap(store)
		faults.On(kvfault.Create).DropReplies()
		faults.On(kvfault.Watch).Hang()
		b.run(b.candidate(faults.Store, "a"), "a")
		time.Sleep(time.Second)
		b.run(b.candidate(store, "b"), "b")
		time.Sleep(3 * ttl)
		leaders := b.leaders()
		faults.Heal()
		require.Equal(t, "b", leaders)
	})
}

func TestAHealthCheckThatDoesNotHeedItsContextCountsAsFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBallot(t)
		slow := make(chan struct{})
		a := b.candidate(memkv.New(), "a", func(o *election.Options) {
			o.Health = func(context.Context) error {
				select {
				case <-slow:
					time.Sleep(5 * ttl)
				default:
				}
				return nil
			}
		})
		term, err := a.Campaign(t.Context())
		require.NoError(t, err)
		close(slow)
		time.Sleep(ttl)
		require.ErrorIs(t, term.Err(), election.ErrResigned, "before it returns")

		ctx, cancel := context.WithTimeout(t.Context(), 20*ttl)
		defer cancel()
		require.NoError(t, term.Resign(ctx))
		_, err = a.Campaign(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded, "though it returns nil")
	})
}

func TestTheResultOfWorkThatEndedInTimeIsReturnedThoughShutdownComesMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBallot(t)
		faults := kvfault.Wrap(memkv.New())
		faults.On(kvfault.Delete).DelayReplies(time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		result := errors.New("disk on fire")
		err := b.candidate(faults.Store, "a").Run(ctx, func(context.Context, *election.Term) error {
			time.AfterFunc(time.Second/2, cancel)
			return result
		})
		require.Equal(t, result, err)
	})
}

func TestAContextOfATermThatHasEndedSaysSo(t *testing.T) {
	c, err := election.New(memkv.New(), "billing", nil)
	require.NoError(t, err)
	alone := runtime.GOMAXPROCS(0) == 1 // then nobody resigns while this looks
	for range 20000 {                   // the moment between the two is short
		term, err := c.Campaign(t.Context())
		require.NoError(t, err)
		var resigning sync.WaitGroup
		resigning.Go(func() { _ = term.Resign(context.WithoutCancel(t.Context())) })
		for term.Err() == nil { // so as to look as soon as it can
			if alone {
				runtime.Gosched()
			}
		}
		require.Error(t, term.Context().Err(), "Term.Err has said so before")
		require.ErrorIs(t, context.Cause(term.Context()), election.ErrResigned)
		resigning.Wait()
	}
}

func TestProclaimDoesNotOutliveTheTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBallot(t)
		faults := kvfault.Wrap(memkv.New())
		term, err := b.candidate(faults.Store, "a").Campaign(t.Context())
		require.NoError(t, err)
		faults.On().DropRequests()
		began := time.Now()
		require.ErrorIs(t, term.Proclaim(t.Context(), "v"), context.DeadlineExceeded)
		require.LessOrEqual(t, time.Since(began), ttl/3)
		time.Sleep(ttl * 55 / 100)
		require.ErrorIs(t, term.Proclaim(t.Context(), "v"), election.ErrLost, "it ended meanwhile")
		faults.Heal()
		require.NoError(t, term.Resign(t.Context()))
	})
}

func TestACampaignThatEndsTriesMoreThanOnceToRemoveItsRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		faults := kvfault.Wrap(store)
		faults.On(kvfault.Create).DropReplies()
		faults.On(kvfault.Get).Next(2).Fail(errStore)
		faults.On(kvfault.Delete).Next(2).Fail(errStore)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := b.candidate(faults.Store, "a").Campaign(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = store.Get(t.Context(), b.name)
		require.ErrorIs(t, err, kv.ErrVacant)
	})
}

func TestResignOfAFreedTermIsNilWhateverItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		term, err := newBallot(t).candidate(memkv.New(), "a").Campaign(t.Context())
		require.NoError(t, err)
		require.NoError(t, term.Resign(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 100 {
			require.NoError(t, term.Resign(ctx))
		}
	})
}

func TestTheLogTellsOfChangesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		store.Put(b.name, "old lock")
		var log tally
		stop := b.run(b.candidate(&breaking{Store: store}, "a", log.option), "a")
		time.Sleep(100 * ttl)
		stop()
		require.LessOrEqual(t, log.count(), 25, "of a watch that breaks all the time, in 1000 s")

		store.Remove(b.name)
		term, err := b.candidate(store, "a").Campaign(t.Context())
		require.NoError(t, err)
		log = tally{}
		slow := kvfault.Wrap(store)
		slow.On(kvfault.Get).DelayReplies(3 * time.Second / 2) // of its looks, so that the watch is sooner
		stop = b.run(b.candidate(slow.Store, "b", log.option), "b")
		for i := range 50 {
			time.Sleep(time.Second)
			require.NoError(t, term.Proclaim(t.Context(), string(rune('a'+i))))
		}
		stop()
		require.Equal(t, 2, log.count(), "of values that change, at who waits: that it is heir, and who leads")
		require.NoError(t, term.Resign(t.Context()))
	})
}

// A tally counts what is logged.
type tally struct {
	mu sync.Mutex
	n  int
}

func (l *tally) option(o *election.Options) { o.Logger = slog.New(slog.NewTextHandler(l, nil)) }

func (l *tally) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n++
	return len(p), nil
}

func (l *tally) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n
}

// What a watch shows of a create that was refused, since a copy of it came first,
// keeps nobody out.
func TestACandidateWhoseCreateArrivesTwiceLeadsSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		b.run(b.candidate(&echoStore{Store: store}, "a"), "a")
		time.Sleep(ttl / 3)
		require.Equal(t, "a", b.leaders())
	})
}

// What a create without a clear answer has put in is recognised though others of
// the campaign were refused since, because of it.
func TestACandidateWhoseClaimIsRefusedForItsOwnSakeLeadsWhenItSeesWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		faults := kvfault.Wrap(store)
		faults.On(kvfault.Create).Next(1).FailReplies(errors.New("connection reset"))
		blind := &blindStore{Store: faults.Store}
		blind.dark.Store(true)
		b.run(b.candidate(views.Over(faults.Store, blind), "a", noHeir), "a") // an heir looks for itself
		time.Sleep(ttl / 3)
		require.Greater(t, faults.Calls(kvfault.Create), 2, "it was refused, and has tried again")
		require.Empty(t, b.leaders())
		blind.dark.Store(false)
		faults.On(kvfault.Watch).Fail(errors.New("connection reset"))
		synctest.Wait()
		faults.Heal()
		time.Sleep(ttl / 3)
		require.Equal(t, "a", b.leaders())
	})
}

// A blindStore shows vacant safes while it is dark.
type blindStore struct {
	kv.Store
	dark atomic.Bool
}

func (s *blindStore) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		if s.dark.Load() && !yield(kv.Record{}, kv.ErrVacant) {
			return
		}
		for rec, err := range s.Store.Watch(ctx, name) {
			if !s.dark.Load() && !yield(rec, err) {
				return
			}
		}
	}
}

// An echoStore carries the first create out twice, and returns the second answer.
type echoStore struct {
	*memkv.Store
	once sync.Once
}

func (s *echoStore) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	s.once.Do(func() { _, _ = s.Store.Create(ctx, name, rec) })
	return s.Store.Create(ctx, name, rec)
}
