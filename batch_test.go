package election_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
)

// A registry is a memory store that refreshes many records at once, as a test says.
type registry struct {
	*memkv.Store
	// refresh is what becomes of one record in a batch; it may take its time.
	refresh func(ctx context.Context, r kv.Held) (kv.Record, error)

	mu      sync.Mutex
	batches []int           // their sizes
	single  int             // refreshes that went alone
	shared  map[string]bool // by name of the safe, whether the record could share a lease when it was created
	share   map[string]bool // likewise, when it was refreshed
}

func newRegistry() *registry {
	s := &registry{Store: memkv.New(), share: make(map[string]bool), shared: make(map[string]bool)}
	s.refresh = func(ctx context.Context, r kv.Held) (kv.Record, error) {
		return s.Store.Refresh(ctx, r.Name, r.Record)
	}
	return s
}

func (s *registry) RefreshAll(ctx context.Context, records []kv.Held, tell func(int, kv.Record, error)) {
	s.mu.Lock()
	s.batches = append(s.batches, len(records))
	for _, r := range records {
		s.share[r.Name] = r.Share
	}
	s.mu.Unlock()
	var crowd sync.WaitGroup
	for i, r := range records {
		crowd.Go(func() {
			rec, err := s.refresh(ctx, r)
			tell(i, rec, err)
		})
	}
	crowd.Wait()
}

func (s *registry) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	s.mu.Lock()
	s.shared[name] = rec.Shared
	s.mu.Unlock()
	return s.Store.Create(ctx, name, rec)
}

func (s *registry) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	s.mu.Lock()
	s.single++
	s.mu.Unlock()
	return s.Store.Refresh(ctx, name, rec)
}

// count returns how many batches there were, of how many records, and how many refreshes
// went alone.
func (s *registry) count() (batches, records, single int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.batches {
		records += n
	}
	return len(s.batches), records, s.single
}

// lead has so many elections led, all of them elected at one instant.
func (s *registry) lead(t *testing.T, elections int) []*election.Term {
	return leadAll(t, s, elections)
}

func leadAll(t *testing.T, s kv.Store, elections int) []*election.Term {
	t.Helper()
	terms := make([]*election.Term, elections)
	begun := time.Now()
	for i := range terms {
		c, err := election.New(s, fmt.Sprint("election ", i), &election.Options{ID: "a", TTL: ttl})
		require.NoError(t, err)
		c.SetClock(func() (mono, boot time.Duration) { return time.Since(begun), time.Since(begun) }) // however long that really takes
		terms[i], err = c.Campaign(t.Context())
		require.NoError(t, err)
	}
	return terms
}

func resignAll(t *testing.T, terms []*election.Term) {
	t.Helper()
	for _, term := range terms {
		require.NoError(t, term.Resign(context.WithoutCancel(t.Context())))
	}
}

func TestElectionsOfOneStoreAreRefreshedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRegistry()
		terms := s.lead(t, 100)
		time.Sleep(4 * ttl)
		for _, term := range terms {
			require.NoError(t, term.Err())
		}
		batches, records, single := s.count()
		require.GreaterOrEqual(t, records, 100*4*3, "refreshes of each term in a TTL")
		require.LessOrEqual(t, batches, 2*4*4, "batches in four TTL")
		require.Zero(t, single)
		resignAll(t, terms)
	})
}

// A hand-over puts the leader's record on the heir's lease.
func TestALeadersRecordMayShareALeaseAndAnHeirsMayNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRegistry()
		terms := s.lead(t, 1)
		heir, err := election.New(s, "election 0", &election.Options{ID: "b", TTL: ttl})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = heir.Campaign(ctx) }()
		time.Sleep(2 * ttl)
		s.mu.Lock()
		want := map[string]bool{"election 0": true, "election 0:heir": false}
		require.Equal(t, want, s.shared, "when it was created")
		require.Equal(t, want, s.share, "when it was refreshed")
		s.mu.Unlock()
		cancel()
		resignAll(t, terms)
	})
}

func TestATermThatABatchRefusesEndsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRegistry()
		honest := s.refresh
		s.refresh = func(ctx context.Context, r kv.Held) (kv.Record, error) {
			if r.Name == "election 3" {
				return kv.Record{}, kv.ErrStale
			}
			return honest(ctx, r)
		}
		terms := s.lead(t, 10)
		time.Sleep(ttl)
		for i, term := range terms {
			if i == 3 {
				require.ErrorIs(t, term.Err(), election.ErrLost)
				continue
			}
			require.NoError(t, term.Err(), i)
		}
		resignAll(t, terms)
	})
}

// A refresh that failed is made again alone, so what ails the batches ends no term.
func TestATermOutlivesBatchesThatAreNotAnswered(t *testing.T) {
	for name, refresh := range map[string]func(ctx context.Context, r kv.Held) (kv.Record, error){
		"silent": func(ctx context.Context, _ kv.Held) (kv.Record, error) {
			<-ctx.Done()
			return kv.Record{}, context.Cause(ctx)
		},
		"failing": func(context.Context, kv.Held) (kv.Record, error) {
			return kv.Record{}, errors.New("connection refused")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newRegistry()
				s.refresh = refresh
				terms := s.lead(t, 10)
				time.Sleep(10 * ttl)
				for _, term := range terms {
					require.NoError(t, term.Err())
				}
				batches, _, single := s.count()
				require.NotZero(t, batches)
				require.NotZero(t, single)
				resignAll(t, terms)
			})
		})
	}
}

// It is asked for when the window ends. The time that the batch takes is time in which the record
// ages.
func TestTrustIsCountedFromBeforeARefreshJoinsABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRegistry()
		honest := s.refresh
		s.refresh = func(ctx context.Context, r kv.Held) (kv.Record, error) {
			time.Sleep(ttl / 5)
			return honest(ctx, r)
		}
		begun := time.Now()
		term := s.lead(t, 1)[0]
		const due = ttl * 9 / 10 / 3
		time.Sleep(due + ttl/5 + ttl/50)
		require.Equal(t, due+ttl/100*3/4+ttl*9/10, term.Until().Sub(begun))
		resignAll(t, []*election.Term{term})
	})
}

// The answer to its refresh, whatever it would be, changes nothing any more.
func TestATermIsResignedWhileItsRefreshIsInABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRegistry()
		goOn := make(chan struct{})
		honest := s.refresh
		s.refresh = func(ctx context.Context, r kv.Held) (kv.Record, error) {
			select {
			case <-goOn:
			case <-ctx.Done():
				return kv.Record{}, context.Cause(ctx)
			}
			return honest(ctx, r)
		}
		terms := s.lead(t, 3)
		time.Sleep(ttl * 9 / 10 / 3)
		synctest.Wait()
		began := time.Now()
		resignAll(t, terms[:1]) // before its batch has left
		time.Sleep(ttl / 100)
		synctest.Wait()
		batches, records, _ := s.count()
		require.Equal(t, []int{1, 2}, []int{batches, records})
		resignAll(t, terms[1:2]) // while it is on its way
		require.Equal(t, ttl/100, time.Since(began), "neither waits for the others' refreshes")
		close(goOn)
		time.Sleep(2 * ttl)
		require.NoError(t, terms[2].Err())
		resignAll(t, terms[2:])
	})
}

func TestAShortTermDoesNotHurryALongOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRegistry()
		honest, times := s.refresh, make(map[string]int)
		s.refresh = func(ctx context.Context, r kv.Held) (kv.Record, error) {
			s.mu.Lock()
			times[r.Name]++
			s.mu.Unlock()
			return honest(ctx, r)
		}
		var terms []*election.Term
		for name, lasts := range map[string]time.Duration{"short": ttl, "long": 20 * ttl} {
			c, err := election.New(s, name, &election.Options{ID: "a", TTL: lasts})
			require.NoError(t, err)
			term, err := c.Campaign(t.Context())
			require.NoError(t, err)
			terms = append(terms, term)
		}
		time.Sleep(20 * ttl)
		s.mu.Lock()
		require.Equal(t, 3, times["long"])
		require.Greater(t, times["short"], 60)
		s.mu.Unlock()
		resignAll(t, terms)
	})
}

// Each refresh that has failed with others goes alone, and a store that fails all of them has to
// bear only few at once. The rest go together again.
func TestAStoreThatFailsThousandsIsAskedForFewAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &narrow{registry: newRegistry()}
		terms := s.lead(t, 1000)
		var down atomic.Bool
		fails := func() error {
			time.Sleep(ttl / 100)
			if down.Load() {
				return errors.New("connection refused")
			}
			return nil
		}
		honest := s.refresh
		s.refresh = func(ctx context.Context, r kv.Held) (kv.Record, error) {
			if err := fails(); err != nil {
				return kv.Record{}, err
			}
			return honest(ctx, r)
		}
		s.fails = fails
		down.Store(true)
		time.Sleep(ttl / 2)
		down.Store(false)
		time.Sleep(ttl)
		for _, term := range terms {
			require.NoError(t, term.Err())
		}
		require.EqualValues(t, 32, s.most.Load())
		resignAll(t, terms)
	})
}

// A narrow registry counts the refreshes that go alone at one time.
type narrow struct {
	*registry
	fails     func() error
	now, most atomic.Int32
}

func (s *narrow) lead(t *testing.T, elections int) []*election.Term { return leadAll(t, s, elections) }

func (s *narrow) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	s.most.Store(max(s.most.Load(), s.now.Add(1)))
	defer s.now.Add(-1)
	if err := s.fails(); err != nil {
		return kv.Record{}, err
	}
	return s.registry.Refresh(ctx, name, rec)
}
