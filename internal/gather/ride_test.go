package gather_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/gather"
	"github.com/electkv/election/kv"
)

const early, late = 2 * time.Second, 5 * time.Second

// ride asks for a refresh that rides along.
func ride(c *clerk, name string) plea {
	p := plea{told: make(chan verdict, 2)}
	p.cancel = gather.Ride(c, window, early, late, patience, kv.Held{Name: name, Record: kv.Record{Signature: name}}, func(v gather.Verdict) {
		p.told <- verdict{v, time.Now()}
	})
	return p
}

func TestARiderGoesWithTheFirstRoundAfterATimeBehindTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clerk{}
		r := ride(c, "rider")
		time.Sleep(early - window - 1)
		a := ask(c, "a") // is called right before the rider may go
		time.Sleep(window)
		require.NoError(t, (<-a.told).Err)
		r.silent(t)
		b, d := ask(c, "b"), ask(c, "d")
		time.Sleep(window)
		require.NoError(t, (<-b.told).Err)
		require.NoError(t, (<-d.told).Err)
		v := <-r.told
		require.NoError(t, v.Err)
		require.Equal(t, "rider", v.Record.Signature)
		time.Sleep(2 * late)
		r.silent(t)
		require.Equal(t, [][]string{{"a"}, {"b", "d", "rider"}}, c.calls())
	})
}

func TestARiderGoesWithARoundOfAnotherWindowButOfNoOtherStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, other := &clerk{}, &clerk{}
		r := ride(c, "rider")
		time.Sleep(early)
		askFor(other, "x", window, patience)
		time.Sleep(window)
		r.silent(t)
		askFor(c, "a", window/10, patience)
		time.Sleep(window)
		require.NoError(t, (<-r.told).Err)
		require.Equal(t, [][]string{{"a", "rider"}}, c.calls())
		require.Equal(t, [][]string{{"x"}}, other.calls())
	})
}

func TestARiderForWhomNoRoundHasComeOpensOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, began := &clerk{}, time.Now()
		r, other := ride(c, "rider"), ride(c, "other")
		v := <-r.told
		require.NoError(t, v.Err)
		require.Equal(t, late+window, v.at.Sub(began))
		require.NoError(t, (<-other.told).Err)
		require.Len(t, c.calls(), 1)
		require.ElementsMatch(t, []string{"rider", "other"}, c.calls()[0])
	})
}

func TestARiderDoesNotProlongTheRoundThatItGoesWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clerk{refresh: hang}
		r := ride(c, "rider")
		time.Sleep(early)
		a, began := askFor(c, "a", window, patience/2), time.Now()
		v := <-a.told
		require.ErrorIs(t, v.Err, context.DeadlineExceeded)
		require.Equal(t, patience/2, v.at.Sub(began))
		v = <-r.told
		require.ErrorIs(t, v.Err, context.DeadlineExceeded)
		require.Equal(t, patience/2, v.at.Sub(began))
	})
}

// A round of records that live for long may hang until that of the rider is over.
func TestARiderWaitsNoLongerThanItWould(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clerk{refresh: hang}
		r := ride(c, "rider")
		time.Sleep(early)
		a, began := askFor(c, "a", window, 100*patience), time.Now()
		v := <-r.told
		require.ErrorIs(t, v.Err, context.DeadlineExceeded)
		require.Equal(t, window+patience, v.at.Sub(began))
		a.silent(t)
		v = <-a.told
		require.ErrorIs(t, v.Err, context.DeadlineExceeded)
		require.Equal(t, 100*patience, v.at.Sub(began))
	})
}

func TestARiderIsCalledOffAtAnyTimeAndToldOnce(t *testing.T) {
	for _, at := range []time.Duration{0, early, early + window/2, early + 2*window, late, late + window/2, late + 2*window} {
		synctest.Test(t, func(t *testing.T) {
			c := &clerk{refresh: hang}
			r := ride(c, "rider")
			if at < late {
				time.AfterFunc(early, func() { ask(c, "a") })
			}
			time.Sleep(at)
			r.cancel()
			synctest.Wait()
			require.ErrorIs(t, (<-r.told).Err, context.Canceled)
			r.cancel()
			time.Sleep(2 * late)
			r.silent(t)
			for _, names := range c.calls() {
				if at < early+window || at >= late && at < late+window {
					require.NotContains(t, names, "rider")
				}
			}
		})
	}
}

func TestARiderThatIsTurnedDownSpoilsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		c := &clerk{refresh: func(_ context.Context, records []kv.Held, tell func(int, kv.Record, error)) {
			for i, r := range records {
				if r.Name == "rider" {
					tell(i, kv.Record{}, broken)
					continue
				}
				tell(i, r.Record, nil)
			}
		}}
		r := ride(c, "rider")
		time.Sleep(early)
		a := ask(c, "a")
		require.NoError(t, (<-a.told).Err)
		require.ErrorIs(t, (<-r.told).Err, broken)
	})
}

// A round whose others were all called off is not called for riders.
func TestARiderWaitsForARoundThatIsCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clerk{}
		r := ride(c, "rider")
		time.Sleep(early)
		a := ask(c, "a")
		a.cancel()
		require.Error(t, (<-a.told).Err)
		time.Sleep(window)
		r.silent(t)
		require.Empty(t, c.calls())
		require.NoError(t, (<-r.told).Err)
	})
}
