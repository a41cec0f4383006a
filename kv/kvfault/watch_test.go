package kvfault_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
)

// A reader notes what a watch yields.
type reader struct {
	mu     sync.Mutex
	values []string // "" is a vacancy
	last   error    // valid when done is closed
	done   chan struct{}
}

func (r *reader) seen() []string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.values)
}

func (r *reader) note(rec kv.Record, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = err
	if err == nil || errors.Is(err, kv.ErrVacant) {
		r.values = append(r.values, rec.Value)
	}
}

// read reads a watch through the faults until it ends.
func (b *bench) read(ctx context.Context) *reader {
	r := &reader{done: make(chan struct{})}
	go func() {
		defer close(r.done)
		for rec, err := range b.faults.Store.Watch(ctx, name) {
			r.note(rec, err)
		}
	}()
	return r
}

// publish changes the record's value in the store itself.
func (b *bench) publish(value string) {
	b.Helper()
	next := b.rec
	next.Value = value
	rec, err := b.store.Swap(b.Context(), name, b.rec, next)
	require.NoError(b, err)
	b.rec = rec
	synctest.Wait()
}

// watching runs a test with a watch that has seen the first state.
func watching(t *testing.T, test func(*bench, *reader)) {
	t.Helper()
	inFakeTime(t, func(b *bench) {
		ctx, cancel := context.WithCancel(b.Context())
		r := b.read(ctx)
		require.Equal(t, []string{"v"}, r.seen())
		test(b, r)
		cancel()
		<-r.done
	})
}

func TestAWatchThatIsCutOffCatchesUp(t *testing.T) {
	watching(t, func(b *bench, r *reader) {
		b.faults.On().DropRequests()
		b.publish("one")
		b.publish("two")
		require.Equal(t, []string{"v"}, r.seen())
		b.faults.Heal()
		require.Equal(t, []string{"v", "two"}, r.seen())
	})
}

func TestADeafWatchNeverLearnsWhatItMissed(t *testing.T) {
	watching(t, func(b *bench, r *reader) {
		b.faults.On(kvfault.Watch).DropReplies()
		b.publish("one")
		time.Sleep(2 * ttl) // the record fades unseen
		b.faults.Heal()
		require.Equal(t, []string{"v"}, r.seen())
		b.store.Put(name, "next")
		require.Equal(t, []string{"v", "next"}, r.seen())
	})
}

func TestADeafWatchEndsWithItsContext(t *testing.T) {
	for fault, set := range map[string]func(kvfault.Faults){
		"cut off":  kvfault.Faults.DropRequests,
		"deaf":     kvfault.Faults.DropReplies,
		"withheld": kvfault.Faults.Withhold,
	} {
		t.Run(fault, func(t *testing.T) {
			inFakeTime(t, func(b *bench) {
				set(b.faults.On(kvfault.Watch))
				ctx, cancel := context.WithTimeout(b.Context(), patient)
				defer cancel()
				start := time.Now()
				r := b.read(ctx)
				<-r.done
				require.Empty(t, r.seen())
				require.ErrorIs(t, r.last, context.DeadlineExceeded)
				require.Equal(t, patient, time.Since(start))
			})
		})
	}
}

func TestAWatchThatRunsBreaksAtOnce(t *testing.T) {
	watching(t, func(b *bench, r *reader) {
		b.faults.On(kvfault.Watch).Next(1).Fail(errDown)
		<-r.done
		require.ErrorIs(t, r.last, errDown)
		require.Equal(t, []string{"v"}, r.seen())

		again := b.read(b.Context())
		require.Equal(t, []string{"v"}, again.seen(), "the fault struck one watch")
		b.faults.On(kvfault.Watch).FailReplies(errDown)
		<-again.done
	})
}

func TestAWatchBreaksAtItsStart(t *testing.T) {
	inFakeTime(t, func(b *bench) {
		b.faults.On(kvfault.Watch).Fail(errDown)
		r := b.read(b.Context())
		<-r.done
		require.ErrorIs(t, r.last, errDown)
		require.Empty(t, r.seen())
		require.Equal(t, 1, b.faults.Calls(kvfault.Watch))
	})
}

func TestAHungWatchIgnoresItsContext(t *testing.T) {
	inFakeTime(t, func(b *bench) {
		b.faults.On(kvfault.Watch).Hang()
		ctx, cancel := context.WithTimeout(b.Context(), patient)
		defer cancel()
		start := time.Now()
		r := b.read(ctx)
		time.AfterFunc(5*patient, b.faults.Heal)
		<-r.done
		require.Equal(t, 5*patient, time.Since(start))
		require.ErrorIs(t, r.last, context.DeadlineExceeded)
	})
}

func TestAHungWatchGoesOnWhenItIsReleased(t *testing.T) {
	watching(t, func(b *bench, r *reader) {
		b.faults.On(kvfault.Watch).Hang()
		b.publish("one")
		require.Equal(t, []string{"v"}, r.seen())
		b.faults.Heal()
		require.Equal(t, []string{"v", "one"}, r.seen())
	})
}

func TestAWatchIsDelayed(t *testing.T) {
	inFakeTime(t, func(b *bench) {
		b.faults.On(kvfault.Watch).DelayRequests(patient)
		b.faults.On(kvfault.Watch).DelayReplies(patient)
		ctx, cancel := context.WithCancel(b.Context())
		r := b.read(ctx)
		time.Sleep(2*patient - 1)
		require.Empty(t, r.seen())
		time.Sleep(1)
		require.Equal(t, []string{"v"}, r.seen())
		b.publish("one")
		require.Equal(t, []string{"v"}, r.seen())
		cancel() // while the state is under way
		<-r.done
		require.Equal(t, []string{"v"}, r.seen())
		require.ErrorIs(t, r.last, context.Canceled)
	})
}

func TestAWatchEndsWithOneError(t *testing.T) {
	for range 100 { // the store's end and the context's race with each other
		inFakeTime(t, func(b *bench) {
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			errs := 0
			for _, err := range b.faults.Store.Watch(ctx, name) {
				if err != nil {
					errs++
					require.ErrorIs(t, err, context.Canceled)
				}
				cancel()
			}
			require.Equal(t, 1, errs)
		})
	}
}

// A lingering store's watches take a second to end.
type lingering struct{ kv.Store }

func (s lingering) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		defer time.Sleep(patient)
		s.Store.Watch(ctx, name)(yield)
	}
}

func TestAWatchLeavesNothingRunning(t *testing.T) {
	inFakeTime(t, func(b *bench) {
		start := time.Now()
		for range kvfault.Wrap(lingering{b.store}).Store.Watch(b.Context(), name) {
			break
		}
		require.Equal(t, patient, time.Since(start), "the loop ends when the store's own watch has ended")
	})
}
