package consulkv

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

// An answer is what a look of a test returns, once it is told.
type answer struct {
	value   string
	reached uint64
	err     error
}

// looking returns a look that waits for an answer, and where it waits from.
func looking(answers chan answer, from chan uint64) func(context.Context, uint64) (entry, uint64, uint64, error) {
	return func(ctx context.Context, index uint64) (entry, uint64, uint64, error) {
		from <- index
		select {
		case a := <-answers:
			return entry{rec: kv.Record{Value: a.value}}, a.reached, a.reached, a.err
		case <-ctx.Done():
			return entry{}, 0, 0, context.Cause(ctx)
		}
	}
}

func TestALookThatBeganEarlierShowsNothingOlderThanWhatAReaderHasSeen(t *testing.T) {
	for what, c := range map[string]struct {
		first answer
		want  []string
	}{
		"older":      {answer{value: "old", reached: 15}, []string{"next"}},
		"the same":   {answer{value: "seen", reached: 20}, []string{"next"}},
		"newer":      {answer{value: "newer", reached: 25}, []string{"newer", "next"}},
		"its errors": {answer{err: errors.New("cut")}, []string{"next"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			conns, of := connectionsOf(nil), subject{key: "k"}
			answers, from := make(chan answer), make(chan uint64, 10)
			look := looking(answers, from)

			first := conns.join(of, 10, 10)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, _ = first.next(t.Context(), look)
				conns.leave(of)
			}()
			require.EqualValues(t, 10, <-from)
			late := conns.join(of, 20, 20) // it has looked by itself meanwhile
			defer conns.leave(of)
			answers <- c.first
			<-ended
			for _, want := range c.want {
				if want == "next" {
					go func() { answers <- answer{value: "next", reached: 3} }() // the index may go back
				}
				got, err := late.next(t.Context(), look)
				require.NoError(t, err, what)
				require.Equal(t, want, got.rec.Value, what)
			}
		})
	}
}

func TestAReaderThatLeavesLetsAnotherLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conns, of := connectionsOf(nil), subject{key: "k"}
		answers, from := make(chan answer), make(chan uint64, 10)
		look := looking(answers, from)
		one, two := conns.join(of, 10, 10), conns.join(of, 10, 10)
		ctx, leave := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() {
			_, err := one.next(ctx, look)
			conns.leave(of)
			gone <- err
		}()
		<-from
		seen := make(chan string, 1)
		go func() {
			now, _ := two.next(t.Context(), look)
			seen <- now.rec.Value
		}()
		synctest.Wait()
		require.Empty(t, from, "one looks at a time")
		leave()
		require.ErrorIs(t, <-gone, context.Canceled)
		require.EqualValues(t, 10, <-from)
		answers <- answer{value: "v", reached: 11}
		require.Equal(t, "v", <-seen)
		conns.leave(of)
		require.Empty(t, conns.views)
	})
}

func TestALookThatFailsEndsAllReadersOfThatTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conns, of := connectionsOf(nil), subject{key: "k"}
		answers, from := make(chan answer), make(chan uint64, 10)
		errs := make(chan error, 3)
		readers := []*reader{conns.join(of, 10, 10), conns.join(of, 10, 10), conns.join(of, 10, 10)}
		for _, r := range readers {
			go func() {
				_, err := r.next(t.Context(), looking(answers, from))
				conns.leave(of)
				errs <- err
			}()
		}
		cut := errors.New("cut")
		answers <- answer{err: cut}
		start := time.Now()
		for range cap(errs) {
			require.ErrorIs(t, <-errs, cut)
		}
		require.Zero(t, time.Since(start))
	})
}

// Many locks of one process may wait for one key with a deadline each.
func TestTurnsThatWereGivenUpDoNotDelayTheNextLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conns, of := connectionsOf(nil), subject{key: "k"}
		last := conns.join(of, 10, 10)
		defer conns.leave(of)
		looks := 0
		hang := func(ctx context.Context, _ uint64) (entry, uint64, uint64, error) {
			looks++
			<-ctx.Done()
			return entry{}, 0, 0, context.Cause(ctx)
		}
		for range 100 {
			r := conns.join(of, 10, 10)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			_, err := r.next(ctx, hang)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			cancel()
			conns.leave(of)
		}
		began := time.Now()
		_, err := last.next(t.Context(), func(context.Context, uint64) (entry, uint64, uint64, error) { return entry{}, 11, 11, nil })
		require.NoError(t, err)
		require.LessOrEqual(t, time.Since(began), paceEvery)
		require.GreaterOrEqual(t, looks, paceBurst+3, "a turn that was given up is the next one's, so some of them look")
	})
}
