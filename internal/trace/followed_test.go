package trace_test

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	memkv "github.com/electkv/election/backends/mem"
	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/internal/trace"
	"github.com/electkv/election/kv"
)

const ttl = 3 * time.Second

// A play is an election of candidates in one process, who are traced.
type play struct {
	mu    sync.Mutex
	store kv.Store
	bend  func(kv.Store) kv.Store // what the engine is given in the place of what notes its requests
	story history.History
}

func newPlay() *play {
	return &play{store: memkv.NewQueue(), bend: func(s kv.Store) kv.Store { return s }}
}

func (p *play) note(who string) func(history.Event) {
	return func(e history.Event) {
		if e.Who = who; e.At == 0 {
			e.At = boottime.Now()
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.story.Events = append(p.story.Events, e)
	}
}

// run has a candidate campaign and lead until ctx ends.
func (p *play) run(ctx context.Context, t *testing.T, opts election.Options) {
	note := p.note(opts.ID)
	opts.TTL = ttl
	c, err := election.New(p.bend(history.Observe(p.store, note)), "play", &opts)
	require.NoError(t, err)
	err = c.Run(machine.WithTracer(ctx, trace.Tracer(note)), func(ctx context.Context, term *election.Term) error {
		note(history.Event{Kind: history.Elected, Token: term.Token()})
		_ = term.Proclaim(ctx, "any bytes: \xff\x00")
		<-ctx.Done()
		return nil
	})
	require.ErrorIs(t, err, election.ErrStopped)
}

// resigned lets two candidates stand, of whom the first leads for a while, and then
// the second.
func (p *play) resigned(t *testing.T, opts election.Options) history.History {
	synctest.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		for i, id := range []string{"a", "b"} {
			opts := opts
			opts.ID, opts.Rank = id, i
			ctx, leave := context.WithCancel(t.Context())
			all.Go(func() { p.run(ctx, t, opts) })
			time.Sleep(4 * ttl)
			defer time.Sleep(ttl)
			defer leave()
			if i == 0 {
				time.AfterFunc(3*ttl, leave)
			}
		}
		time.Sleep(3 * ttl)
		t.Cleanup(all.Wait)
	})
	p.story.Sort()
	return p.story
}

func judge(h history.History) oracle.Finding { return oracle.Judge(h, trace.Followed)[0] }

func TestARealCampaignFollowsTheCore(t *testing.T) {
	orders := map[string]election.Succession{"none": nil, "first come": election.FirstCome, "rank": election.ByRank}
	for name, order := range orders {
		t.Run(name, func(t *testing.T) {
			h := newPlay().resigned(t, election.Options{Succession: order, Health: func(context.Context) error { return nil }})
			require.Len(t, h.Of("", history.Elected), 2)
			f := judge(h)
			require.Equal(t, oracle.Kept, f.Verdict, f.Detail)
			require.Greater(t, f.Count, 20)
			t.Log(f.Detail)
		})
	}
}

func TestACampaignWhoseContextHasEndedIsShownNoWatch(t *testing.T) {
	p := newPlay()
	synctest.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		defer all.Wait()
		stand := func(id string) (ctx *endingContext, leave func()) {
			inner, leave := context.WithCancel(t.Context())
			ctx = &endingContext{Context: inner}
			all.Go(func() { p.run(ctx, t, election.Options{ID: id}) })
			time.Sleep(ttl)
			return ctx, leave
		}
		_, leaveLeader := stand("leader")
		heir, leaveHeir := stand("heir")
		defer leaveHeir()
		heir.ended.Store(true)
		leaveLeader() // it hands over
		time.Sleep(ttl / 2)
		_, err := p.store.Get(t.Context(), "play")
		require.ErrorIs(t, err, kv.ErrVacant, "the heir leaves nothing behind")
	})
	p.story.Sort()
	require.Len(t, p.story.Of("", history.Elected), 1)
	f := judge(p.story)
	require.Equal(t, oracle.Kept, f.Verdict, f.Detail)
}

// An endingContext has ended, and nobody that waits for its end was woken yet.
type endingContext struct {
	context.Context
	ended atomic.Bool
}

func (c *endingContext) Err() error {
	if c.ended.Load() {
		return context.Canceled
	}
	return c.Context.Err()
}

func TestATraceIsTheSameInAFile(t *testing.T) {
	h := newPlay().resigned(t, election.Options{})
	var file bytes.Buffer
	require.NoError(t, history.Write(&file, h))
	got, err := history.Read(&file)
	require.NoError(t, err)
	require.Equal(t, h, got)
	require.Equal(t, judge(h), judge(got))
}

func TestAHistoryWithoutATraceSaysNothing(t *testing.T) {
	require.Equal(t, oracle.Silent, trace.Followed(oracle.Evidence{}).Verdict)
	h := newPlay().resigned(t, election.Options{})
	h.Events = h.Of("", history.Elected, history.Sent, history.Answered)
	require.Equal(t, oracle.Silent, judge(h).Verdict)
}
