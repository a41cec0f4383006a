package sim_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/sim"
	"github.com/electkv/election/kv"
)

// In these tests the "engine" asks the store by hand, and the history tells what
// the world did to that.
func world(t *testing.T, s sim.Schedule, do func(ctx context.Context, n *sim.Node)) (h history.History) {
	s.TTL, s.Horizon = 10*time.Second, time.Hour
	s.Nodes = append(s.Nodes, sim.NodePlan{}, sim.NodePlan{})
	done := false
	synctest.Test(t, func(*testing.T) {
		h = sim.Run(s, func(n *sim.Node) sim.Engine {
			return func(ctx context.Context) error {
				if n.Index == 0 && !done {
					done = true
					do(ctx, n)
				}
				<-ctx.Done()
				return nil
			}
		})
	})
	return h
}

var mine = kv.Record{Signature: "a/1", TTL: 10 * time.Second}

// lives returns how long the record lives that a create puts in.
func lives(ctx context.Context, n *sim.Node) time.Duration {
	sent := n.Now()
	_, _ = n.Store.Create(ctx, "sim", mine)
	for rec, err := range n.Store.Watch(ctx, "sim") {
		if err != nil && rec == (kv.Record{}) {
			break
		}
	}
	return n.Now() - sent
}

func TestARecordLivesByTheStoresClock(t *testing.T) {
	for name, c := range map[string]struct {
		store    sim.StorePlan
		from, to time.Duration
	}{
		"exact": {sim.StorePlan{}, 10 * time.Second, 10 * time.Second},
		"fast":  {sim.StorePlan{Rate: 250_000}, 8 * time.Second, 8 * time.Second},
		"slow":  {sim.StorePlan{Rate: -200_000}, 12500 * time.Millisecond, 12500 * time.Millisecond},
		"least": {sim.StorePlan{Least: 15 * time.Second}, 15 * time.Second, 15 * time.Second},
		"most":  {sim.StorePlan{Most: 7 * time.Second}, 7 * time.Second, 7 * time.Second},
		"lazy":  {sim.StorePlan{Lazy: 10 * time.Second}, 10*time.Second + 1, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			world(t, sim.Schedule{Store: c.store}, func(ctx context.Context, n *sim.Node) {
				lived := lives(ctx, n)
				require.GreaterOrEqual(t, lived, c.from)
				require.LessOrEqual(t, lived, c.to)
			})
		})
	}
}

func TestAValueThatIsPublishedIsNoRefresh(t *testing.T) {
	world(t, sim.Schedule{}, func(ctx context.Context, n *sim.Node) {
		time.AfterFunc(5*time.Second, func() {
			rec, err := n.Link.Get(ctx, "sim")
			require.NoError(t, err)
			rec.Value = "busy"
			rec, err = n.Link.Swap(ctx, "sim", rec, rec)
			require.NoError(t, err)
			require.Equal(t, "busy", rec.Value)
		})
		require.Equal(t, mine.TTL, lives(ctx, n))
	})
}

func TestARestartLetsRecordsGoOnOrLiveAnew(t *testing.T) {
	for kind, want := range map[sim.Kind]time.Duration{sim.Restart: 10 * time.Second, sim.Anew: 17 * time.Second} {
		down := sim.Fault{Kind: kind, Who: sim.Everybody, Window: sim.Window{From: 2 * time.Second, To: 7 * time.Second}}
		world(t, sim.Schedule{Faults: []sim.Fault{down}}, func(ctx context.Context, n *sim.Node) {
			_, err := n.Store.Create(ctx, "sim", mine)
			require.NoError(t, err)
			for n.Now() < 30*time.Second {
				bounded, cancel := context.WithTimeout(ctx, time.Second)
				_, err = n.Store.Get(bounded, "sim")
				cancel()
				if err == kv.ErrVacant { //nolint:errorlint // the model wraps nothing
					break
				}
				time.Sleep(time.Millisecond)
			}
			require.InDelta(t, want, n.Now(), 1e9, "%s", kind)
		})
	}
}

func TestANetworkLosesWhatTheScheduleSays(t *testing.T) {
	until := sim.Window{From: 0, To: time.Minute}
	for kind, carried := range map[sim.Kind]int{sim.CutRequests: 0, sim.CutReplies: 1, sim.Crash: 0, sim.LoseReply: 1} {
		faults := []sim.Fault{{Kind: kind, Window: until, Op: "create"}}
		if kind == sim.Crash {
			faults[0].From = 2 // once it has begun
		}
		h := world(t, sim.Schedule{Faults: faults}, func(ctx context.Context, n *sim.Node) {
			time.Sleep(3)
			bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_, err := n.Store.Create(bounded, "sim", mine)
			require.ErrorIs(t, err, context.DeadlineExceeded, "%s", kind)
		})
		require.Len(t, h.Of("a", history.Committed), carried, "%s", kind)
	}
}

func TestADuplicateArrivesLater(t *testing.T) {
	twice := sim.Fault{Kind: sim.Duplicate, Window: sim.Window{From: 0, To: time.Minute}, Size: time.Second, Chance: 100}
	h := world(t, sim.Schedule{Faults: []sim.Fault{twice}}, func(ctx context.Context, n *sim.Node) {
		_, err := n.Store.Create(ctx, "sim", mine)
		require.NoError(t, err)
		rec, err := n.Store.Get(ctx, "sim")
		require.NoError(t, err)
		_, err = n.Store.Refresh(ctx, "sim", rec)
		require.NoError(t, err)
	})
	require.Len(t, h.Of("a", history.Committed), 3, "a create once, a refresh twice")
}

func TestAPausedCandidateStandsStillWhateverItsContextSays(t *testing.T) {
	for _, kind := range []sim.Kind{sim.PauseBefore, sim.PauseAfter} {
		pause := sim.Fault{Kind: kind, Op: "create", Window: sim.Window{From: 0, To: time.Minute}, Size: 30 * time.Second}
		world(t, sim.Schedule{Faults: []sim.Fault{pause}}, func(ctx context.Context, n *sim.Node) {
			bounded, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			before, _ := n.Read()
			time.AfterFunc(time.Second, func() {
				mono, _ := n.Read()
				require.Equal(t, before, mono, "and reads no clock meanwhile")
			})
			sent := n.Now()
			_, _ = n.Store.Create(bounded, "sim", mine)
			require.GreaterOrEqual(t, n.Now()-sent, pause.Size, "%s", kind)
		})
	}
}

func TestSomebodyElseGetsTheSafeWhenItIsVacant(t *testing.T) {
	foreign := sim.Fault{Kind: sim.Foreign, Who: sim.Everybody, Window: sim.Window{From: time.Second, To: time.Minute}}
	h := world(t, sim.Schedule{Faults: []sim.Fault{foreign}}, func(ctx context.Context, n *sim.Node) {
		rec, err := n.Store.Create(ctx, "sim", mine)
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		require.NoError(t, n.Store.Delete(ctx, "sim", rec))
		rec, err = n.Store.Get(ctx, "sim")
		require.NoError(t, err)
		require.True(t, rec.Foreign)
	})
	require.Len(t, h.Of("", history.Placed), 1)
	require.Len(t, h.Of("", history.Found), 1)
}

func TestALineIsServedInOrder(t *testing.T) {
	old := sim.Fault{Kind: sim.Foreign, Who: sim.Everybody, Window: sim.Window{From: time.Second, To: 20 * time.Second}}
	h := world(t, sim.Schedule{Store: sim.StorePlan{Lines: true}, Faults: []sim.Fault{old}}, func(ctx context.Context, n *sim.Node) {
		line, ok := n.Store.(kv.Queue)
		require.True(t, ok)
		time.Sleep(2 * time.Second)
		_, err := line.Create(ctx, "sim", mine)
		require.ErrorIs(t, err, kv.ErrHeld)
		place, err := line.Join(ctx, "sim", mine)
		require.NoError(t, err)
		again, err := line.Join(ctx, "sim", mine)
		require.NoError(t, err)
		require.Equal(t, place, again)
		_, err = line.Refresh(ctx, "sim", place)
		require.ErrorIs(t, err, kv.ErrStale, "it is not first")
		time.Sleep(6 * time.Second)
		_, leads, err := line.Stay(ctx, "sim", place)
		require.NoError(t, err)
		require.False(t, leads)
		time.Sleep(9 * time.Second) // it would be gone by now
		_, leads, err = line.Stay(ctx, "sim", place)
		require.NoError(t, err)
		require.False(t, leads)
		time.Sleep(5 * time.Second)
		first, err := line.Get(ctx, "sim")
		require.NoError(t, err)
		require.Equal(t, place, first)
		_, leads, err = line.Stay(ctx, "sim", place)
		require.NoError(t, err)
		require.True(t, leads)
		time.Sleep(11 * time.Second)
		_, _, err = line.Stay(ctx, "sim", place)
		require.ErrorIs(t, err, kv.ErrStale)
	})
	who := []string{}
	for i, e := range h.Of("", history.Holds) {
		who = append(who, e.Who+e.Value)
		if i == 2 {
			require.Zero(t, e.Token)
		}
	}
	require.Equal(t, []string{"locked by hand 0", "a", ""}, who)
	require.Len(t, h.Of("a", history.Committed), 4, "one join and three stays")
}

func TestNobodyJoinsWhereThereAreNoLines(t *testing.T) {
	world(t, sim.Schedule{}, func(_ context.Context, n *sim.Node) {
		_, ok := n.Store.(kv.Queue)
		require.False(t, ok)
	})
}

// Nobody but the candidates lets records expire.
func TestWhereObserversJudgeARecordLivesByTheirClocks(t *testing.T) {
	for name, c := range map[string]struct {
		node     sim.NodePlan
		from, to time.Duration
	}{
		"exact":       {sim.NodePlan{}, 10 * time.Second, 10 * time.Second},
		"fast":        {sim.NodePlan{Rate: 250_000}, 8 * time.Second, 8 * time.Second},
		"slow":        {sim.NodePlan{Rate: -200_000}, 12500 * time.Millisecond, 12500 * time.Millisecond},
		"set forward": {sim.NodePlan{Leap: sim.Window{From: 2 * time.Second, To: time.Hour}}, 10 * time.Second, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := sim.Schedule{Store: sim.StorePlan{Expiry: sim.ByObserver, Rate: 250_000}, Nodes: []sim.NodePlan{c.node}}
			h := world(t, s, func(ctx context.Context, n *sim.Node) {
				lived := lives(ctx, n)
				require.GreaterOrEqual(t, lived, c.from)
				require.LessOrEqual(t, lived, c.to+time.Second/100)
				rec, err := n.Cells().Get(ctx, "sim")
				require.NoError(t, err, "it is in the store as before")
				require.Equal(t, mine.Signature, rec.Signature)
				next := mine
				next.Signature = "a/2"
				_, err = n.Store.Create(ctx, "sim", next)
				require.NoError(t, err)
			})
			require.Len(t, h.Of("a", history.Committed), 2)
			require.Len(t, h.Of("a", history.Holds), 2)
		})
	}
}

func TestWhoComesBackHasForgottenWhatItSaw(t *testing.T) {
	s := sim.Schedule{Store: sim.StorePlan{Expiry: sim.ByObserver}}
	s.TTL, s.Horizon, s.Nodes = 10*time.Second, time.Minute, make([]sim.NodePlan, 1)
	s.Faults = []sim.Fault{{Kind: sim.Away, Window: sim.Window{From: 5100 * time.Millisecond, To: 6100 * time.Millisecond}}}
	held := []string{}
	synctest.Test(t, func(*testing.T) {
		sim.Run(s, func(n *sim.Node) sim.Engine {
			return func(ctx context.Context) error {
				_, err := n.Store.Create(ctx, "sim", mine)
				held = append(held, history.ResultOf(err))
				time.Sleep(5 * time.Second)
				return nil
			}
		})
	})
	// At 0, and then by one who knows of nothing before 6, at 6, 11 and 16.
	require.Equal(t, []string{history.OK, history.Held, history.Held, history.OK}, held[:4])
}
