package linear_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/internal/linear"
	"github.com/electkv/election/internal/views"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
)

const (
	clients = 5
	// patience is for a machine that is slow at times.
	patience = time.Minute
)

// ample crowds write records that outlive them.
var ample = linear.Crowd{Ops: 3000, OpsPerSafe: 40, MaxUnknown: 3, TTL: time.Hour, Timeout: 20 * time.Millisecond}

// brief crowds often find that a record has faded.
var brief = linear.Crowd{Ops: 3000, OpsPerSafe: 40, MaxUnknown: 3, TTL: 5 * time.Millisecond, Timeout: 20 * time.Millisecond}

// A slow store takes up to a millisecond to be asked, and as long to answer.
type slow struct {
	kv.Store
	random *rand.Rand
}

// delay gives each client its own moments, so that a run in fake time repeats.
func delay(store kv.Store, seed uint64, client int) kv.Store {
	return views.Over(store, &slow{Store: store, random: rand.New(rand.NewPCG(seed, uint64(client)+1000))})
}

func (s *slow) wait() { time.Sleep(time.Duration(s.random.IntN(int(time.Millisecond)))) }

func (s *slow) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	s.wait()
	defer s.wait()
	return s.Store.Create(ctx, name, rec)
}

func (s *slow) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	s.wait()
	defer s.wait()
	return s.Store.Swap(ctx, name, old, next)
}

func (s *slow) HandOver(ctx context.Context, name string, old kv.Record, place string, heir kv.Record, note string) (kv.Record, error) {
	s.wait()
	defer s.wait()
	return s.Store.(kv.HandOver).HandOver(ctx, name, old, place, heir, note)
}

func (s *slow) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	s.wait()
	defer s.wait()
	return s.Store.Refresh(ctx, name, rec)
}

func (s *slow) RefreshAll(ctx context.Context, records []kv.Held, tell func(int, kv.Record, error)) {
	s.wait()
	defer s.wait()
	s.Store.(kv.Batch).RefreshAll(ctx, records, tell)
}

func (s *slow) Delete(ctx context.Context, name string, rec kv.Record) error {
	s.wait()
	defer s.wait()
	return s.Store.Delete(ctx, name, rec)
}

func (s *slow) Vacate(ctx context.Context, name string, rec kv.Record, place string) (kv.Record, error) {
	s.wait()
	defer s.wait()
	return s.Store.(kv.Vacate).Vacate(ctx, name, rec, place)
}

func (s *slow) Get(ctx context.Context, name string) (kv.Record, error) {
	s.wait()
	defer s.wait()
	return s.Store.Get(ctx, name)
}

// record lets a crowd loose on a store in fake time. Now and then the network
// loses a request or a reply, or lets a request come long after its client has
// given it up.
func record(t *testing.T, crowd linear.Crowd, open func() kv.Store) []linear.Operation {
	t.Helper()
	var history []linear.Operation
	synctest.Test(t, func(t *testing.T) {
		recorder, store := linear.NewRecorder(), open()
		var stores []kv.Store
		var nets []*kvfault.Link
		for i := range clients {
			net := kvfault.Wrap(store)
			nets = append(nets, net)
			stores = append(stores, recorder.Client(i, delay(net.Store, crowd.Seed, i)))
		}
		trouble := rand.New(rand.NewPCG(crowd.Seed, 77))
		done := make(chan struct{})
		go func() {
			defer close(done)
			crowd.Run(t.Context(), stores...)
		}()
		for n := 0; ; n++ {
			select {
			case <-done:
				history = recorder.History()
				return
			case <-time.After(time.Duration(5+trouble.IntN(20)) * time.Millisecond):
			}
			net := nets[trouble.IntN(len(nets))]
			switch n % 4 {
			case 0:
				net.On().Next(1).DropReplies()
			case 1:
				net.On().Next(1).DropRequests()
			case 2:
				net.On().Next(1).Withhold()
			case 3:
				for _, net := range nets {
					net.Deliver(t.Context())
				}
			}
		}
	})
	return history
}

// count returns how many operations of a kind had an outcome.
func count(history []linear.Operation, kind linear.Kind, outcome linear.Outcome) int {
	n := 0
	for _, op := range history {
		if op.Kind == kind && op.Outcome == outcome {
			n++
		}
	}
	return n
}

func check(t *testing.T, history []linear.Operation) linear.Verdict {
	t.Helper()
	verdict, err := linear.Check(history, patience)
	require.NoError(t, err)
	return verdict
}

func TestACorrectStoreIsFoundCorrectWhateverTheNetworkLoses(t *testing.T) {
	for name, crowd := range map[string]linear.Crowd{"long lives": ample, "short lives": brief} {
		for seed := range uint64(4) {
			crowd.Seed = seed
			history := record(t, crowd, func() kv.Store { return memkv.New() })
			start := time.Now()
			verdict := check(t, history)
			require.Equal(t, linear.Kept, verdict.Result, "%s, seed %d: %q", name, seed, verdict.Names)
			require.Equal(t, crowd.Ops, verdict.Operations)
			require.NotZero(t, verdict.Surfaced)
			t.Logf("%s, seed %d: %d safes, %d unknown outcomes, checked in %v", name, seed, verdict.Safes, verdict.Unknown, time.Since(start))
			requireVariety(t, history)
		}
	}
}

// requireVariety makes sure that the crowd did all that there is to do.
func requireVariety(t *testing.T, history []linear.Operation) {
	t.Helper()
	for kind, outcomes := range map[linear.Kind][]linear.Outcome{
		linear.Create:  {linear.Done, linear.Held, linear.Unknown},
		linear.Swap:    {linear.Done, linear.Stale, linear.Unknown},
		linear.Refresh: {linear.Done, linear.Stale, linear.Unknown},
		linear.Delete:  {linear.Done, linear.Stale, linear.Unknown},
		linear.Get:     {linear.Done, linear.Vacant, linear.Unknown},
	} {
		for _, outcome := range outcomes {
			require.NotZero(t, count(history, kind, outcome), "%s: %s", kind, outcome)
		}
	}
}

func TestHandOversInOneStepOfACorrectStoreAreFoundCorrect(t *testing.T) {
	for name, crowd := range map[string]linear.Crowd{"long lives": ample, "short lives": brief} {
		for seed := range uint64(4) {
			crowd.Seed, crowd.Whole = seed, true
			history := record(t, crowd, func() kv.Store { return memkv.New() })
			verdict := check(t, history)
			require.Equal(t, linear.Kept, verdict.Result, "%s, seed %d: %q", name, seed, verdict.Names)
			for _, outcome := range []linear.Outcome{linear.Done, linear.Stale, linear.Unknown} {
				require.NotZero(t, count(history, linear.HandOver, outcome), outcome)
			}
			t.Logf("%s, seed %d: %d done", name, seed, count(history, linear.HandOver, linear.Done))
			requireVariety(t, history)
		}
	}
}
