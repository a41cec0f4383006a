package gather_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/gather"
	"github.com/electkv/election/kv"
)

const window, patience = 100 * time.Millisecond, time.Second

// A clerk is a store that refreshes many records at once, as a test says.
type clerk struct {
	kv.Store
	refresh func(ctx context.Context, records []kv.Held, tell func(int, kv.Record, error))

	mu    sync.Mutex
	asked [][]string // the names, call by call
}

func (c *clerk) RefreshAll(ctx context.Context, records []kv.Held, tell func(int, kv.Record, error)) {
	var names []string
	for _, r := range records {
		names = append(names, r.Name)
	}
	c.mu.Lock()
	c.asked = append(c.asked, names)
	c.mu.Unlock()
	if c.refresh != nil {
		c.refresh(ctx, records, tell)
		return
	}
	for i, r := range records {
		tell(i, r.Record, nil)
	}
}

func (c *clerk) calls() [][]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.asked)
}

// hang answers nothing until the context ends.
func hang(ctx context.Context, records []kv.Held, tell func(int, kv.Record, error)) {
	<-ctx.Done()
	for i := range records {
		tell(i, kv.Record{}, context.Cause(ctx))
	}
}

// A verdict is what one refresh was told, and when.
type verdict struct {
	gather.Verdict
	at time.Time
}

// A plea is a refresh that was asked for.
type plea struct {
	cancel func()
	told   chan verdict
}

func ask(c *clerk, name string) plea { return askFor(c, name, window, patience) }

func askFor(c *clerk, name string, window, within time.Duration) plea {
	p := plea{told: make(chan verdict, 2)}
	p.cancel = gather.Refresh(c, window, within, kv.Held{Name: name, Record: kv.Record{Signature: name}}, func(v gather.Verdict) {
		p.told <- verdict{v, time.Now()}
	})
	return p
}

// silent requires that nothing was told yet.
func (p plea) silent(t *testing.T) {
	t.Helper()
	synctest.Wait()
	require.Empty(t, p.told)
}

// once returns the verdict, and requires that there is no other.
func (p plea) once(t *testing.T) verdict {
	t.Helper()
	v := <-p.told
	synctest.Wait()
	require.Empty(t, p.told, "told twice")
	return v
}

func TestRefreshesOfOneWindowAreOneCallWithAVerdictEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clerk{refresh: func(_ context.Context, records []kv.Held, tell func(int, kv.Record, error)) {
			for i := range slices.Backward(records) {
				if records[i].Name == "b" {
					tell(i, kv.Record{}, kv.ErrStale)
					continue
				}
				tell(i, records[i].Record, nil)
			}
		}}
		begun := time.Now()
		a, b := ask(c, "a"), ask(c, "b")
		time.Sleep(window - 1)
		d := ask(c, "d")
		synctest.Wait()
		require.Empty(t, c.calls())
		for name, p := range map[string]plea{"a": a, "d": d} {
			v := p.once(t)
			require.NoError(t, v.Err)
			require.Equal(t, name, v.Record.Signature)
			require.Equal(t, window, v.at.Sub(begun))
			require.Equal(t, begun, v.Opened, "for those that came later too")
		}
		require.ErrorIs(t, b.once(t).Err, kv.ErrStale)
		require.Equal(t, [][]string{{"a", "b", "d"}}, c.calls())
	})
}

func TestARoundThatIsNotAnsweredDelaysNoLaterOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := true
		c := &clerk{}
		c.refresh = func(ctx context.Context, records []kv.Held, tell func(int, kv.Record, error)) {
			if first {
				first = false
				hang(ctx, records, tell)
				return
			}
			tell(0, records[0].Record, nil)
		}
		begun := time.Now()
		a := ask(c, "a")
		time.Sleep(window)
		synctest.Wait()
		b := ask(c, "b")
		require.NoError(t, b.once(t).Err)
		a.silent(t)
		v := a.once(t)
		require.ErrorIs(t, v.Err, context.DeadlineExceeded)
		require.Equal(t, patience, v.at.Sub(begun))
	})
}

// One that is in a hurry cuts no other short.
func TestARefreshTakesNoLongerThanItMayWhateverItGoesWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(ctx context.Context, records []kv.Held, tell func(int, kv.Record, error)) {
			time.Sleep(patience * 3 / 4)
			for i, r := range records {
				tell(i, r.Record, ctx.Err())
			}
		}
		c := &clerk{refresh: slow}
		begun := time.Now()
		a, late, b := ask(c, "a"), askFor(c, "late", window, window/2), askFor(c, "b", window, patience/2)
		v := late.once(t)
		require.ErrorIs(t, v.Err, context.DeadlineExceeded)
		require.Equal(t, window, v.at.Sub(begun), "when the window has ended")
		v = b.once(t)
		require.ErrorIs(t, v.Err, context.DeadlineExceeded)
		require.Equal(t, patience/2, v.at.Sub(begun))
		require.NoError(t, a.once(t).Err)

		c.refresh = hang
		begun = time.Now()
		v = ask(c, "c").once(t)
		require.ErrorIs(t, v.Err, context.DeadlineExceeded)
		require.Equal(t, patience, v.at.Sub(begun))
	})
}

func TestStoresAndWindowsAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, other := &clerk{}, &clerk{}
		begun := time.Now()
		all := []plea{ask(c, "a"), ask(other, "b"), askFor(c, "c", window/10, patience)}
		for i, after := range []time.Duration{window, window, window / 10} {
			v := all[i].once(t)
			require.NoError(t, v.Err)
			require.Equal(t, after, v.at.Sub(begun))
		}
		require.Equal(t, [][]string{{"c"}, {"a"}}, c.calls())
		require.Equal(t, [][]string{{"b"}}, other.calls())
	})
}

func TestARefreshThatIsCalledOffBeforeTheCallIsNotAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clerk{}
		begun := time.Now()
		a, b := ask(c, "a"), ask(c, "b")
		a.cancel()
		a.cancel()
		v := a.once(t)
		require.ErrorIs(t, v.Err, context.Canceled)
		require.Zero(t, v.at.Sub(begun))
		require.NoError(t, b.once(t).Err)
		require.Equal(t, [][]string{{"b"}}, c.calls())
		a.cancel()
		b.cancel()
		b.silent(t)
	})
}

func TestWhenAllAreCalledOffTheStoreIsNotAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clerk{}
		a, b := ask(c, "a"), ask(c, "b")
		time.Sleep(window / 2)
		a.cancel()
		b.cancel()
		again := ask(c, "c") // which is of another round
		begun := time.Now()
		for _, p := range []plea{a, b} {
			require.ErrorIs(t, p.once(t).Err, context.Canceled)
		}
		v := again.once(t)
		require.NoError(t, v.Err)
		require.Equal(t, window, v.at.Sub(begun))
		require.Equal(t, [][]string{{"c"}}, c.calls())
	})
}

func TestARefreshThatIsCalledOffDuringTheCallLeavesTheOthersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		c := &clerk{refresh: func(ctx context.Context, records []kv.Held, tell func(int, kv.Record, error)) {
			<-goOn
			for i, r := range records {
				tell(i, r.Record, ctx.Err())
			}
		}}
		a, b := ask(c, "a"), ask(c, "b")
		time.Sleep(window)
		synctest.Wait()
		a.cancel()
		require.ErrorIs(t, a.once(t).Err, context.Canceled)
		b.silent(t)
		close(goOn)
		require.NoError(t, b.once(t).Err)
		a.silent(t)
	})
}

// A campaign that has its answer may end, and nothing that it started may outlast it.
func TestTheLastThatIsCalledOffEndsTheCallAndIsToldWhenItHasReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		returned := false
		c := &clerk{refresh: func(ctx context.Context, records []kv.Held, tell func(int, kv.Record, error)) {
			hang(ctx, records, tell)
			time.Sleep(time.Millisecond)
			returned = true
		}}
		a, b := ask(c, "a"), ask(c, "b")
		time.Sleep(window)
		synctest.Wait()
		a.cancel()
		require.ErrorIs(t, a.once(t).Err, context.Canceled)
		require.False(t, returned)
		b.cancel()
		require.ErrorIs(t, b.once(t).Err, context.Canceled)
		require.True(t, returned)
	})
}

func TestAStoreThatOwesAVerdictOrTellsTwiceHarmsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clerk{refresh: func(_ context.Context, records []kv.Held, tell func(int, kv.Record, error)) {
			tell(1, records[1].Record, nil)
			tell(1, kv.Record{}, kv.ErrStale)
		}}
		a, b := ask(c, "a"), ask(c, "b")
		err := a.once(t).Err
		require.Error(t, err)
		for _, definite := range []error{kv.ErrStale, kv.ErrVacant, kv.ErrHeld, kv.ErrInvalid} {
			require.NotErrorIs(t, err, definite)
		}
		require.NoError(t, b.once(t).Err)
	})
}

func TestAStoreThatCannotBeToldFromOthersIsNoBatch(t *testing.T) {
	require.Nil(t, gather.From(struct {
		kv.Batch
		settings map[string]string
	}{Batch: &clerk{}}))
	require.NotNil(t, gather.From(&clerk{}))
	require.Nil(t, gather.From(struct{ kv.Store }{&clerk{}}))
}

// Elections come and go at once.
func TestManyAskAndCallOffAtTheSameTime(t *testing.T) {
	c := &clerk{refresh: func(ctx context.Context, records []kv.Held, tell func(int, kv.Record, error)) {
		for i, r := range records {
			if ctx.Err() != nil {
				tell(i, kv.Record{}, context.Cause(ctx))
				continue
			}
			tell(i, r.Record, nil)
		}
	}}
	var crowd sync.WaitGroup
	for i := range 500 {
		crowd.Go(func() {
			for j := range 20 {
				name := fmt.Sprint(i, "/", j)
				p := askFor(c, name, time.Millisecond, time.Minute)
				if (i+j)%3 == 0 {
					time.Sleep(time.Duration(i%7) * 200 * time.Microsecond)
					p.cancel()
				}
				v := <-p.told
				if !errors.Is(v.Err, context.Canceled) {
					assert.Equal(t, gather.Verdict{Record: kv.Record{Signature: name}, Opened: v.Opened}, v.Verdict)
				}
			}
		})
	}
	crowd.Wait()
}
