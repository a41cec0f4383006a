package group_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/group"
)

// fake runs a test of members in fake time.
func fake(t *testing.T, size int, f func(c *cluster)) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{TB: t, net: newNetwork(), all: map[string]*actor{}}
		for i := range size {
			c.opts.Peers = append(c.opts.Peers, string(rune('a'+i)))
		}
		t.Cleanup(func() { require.Empty(t, c.findings()) })
		f(c)
	})
}

// member starts a process that does nothing yet.
func (c *cluster) member(id string) *group.Member {
	c.Helper()
	opts := c.opts
	opts.ID = id
	if testing.Verbose() {
		opts.Logger = slog.New(slog.NewTextHandler(c.Output(), nil)).With("self", id)
	}
	c.starts++
	m, err := group.NewOn(opts, c.starts, c.net.port(id))
	require.NoError(c, err)
	c.Cleanup(func() { require.NoError(c, m.Close()) })
	return m
}

// start starts a process that does some work.
func (c *cluster) start(id string, do work) *actor {
	c.Helper()
	a := act(c.member(id), fmt.Sprintf("%s#%d", id, c.starts), c.note, do)
	c.all[id] = a
	c.Cleanup(func() { require.NoError(c, a.quit()) })
	return a
}

func (c *cluster) startAll() {
	c.Helper()
	for _, id := range c.opts.Peers {
		c.start(id, obey)
	}
}

// crash ends a process without a word.
func (c *cluster) crash(id string) {
	c.Helper()
	a := c.all[id]
	delete(c.all, id)
	c.net.cut(id)
	require.NoError(c, a.quit())
}

// merges waits until some processes are one group, and returns how long that took.
func (c *cluster) merges(within time.Duration, ids ...string) time.Duration {
	c.Helper()
	who := []string{}
	for _, id := range ids {
		who = append(who, c.all[id].who)
	}
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		synctest.Wait()
		took := time.Since(began)
		if c.together(who...) {
			return took
		}
		require.Less(c, took, within, "%v", c.now())
	}
}

// group returns the group that a process is in.
func (c *cluster) group(id string) group.Group { return c.now()[c.all[id].who] }

func TestAllThatReachEachOtherAreOneGroup(t *testing.T) {
	fake(t, 5, func(c *cluster) {
		c.startAll()
		took := c.merges(c.opts.Merged(), c.opts.Peers...)
		c.Log(took)
		require.Equal(c, c.opts.Peers, c.group("c").Members)
		require.Equal(c, "a", c.group("c").Leader)
		require.Len(c, c.of(c.all["a"].who, led), 1)
		require.Empty(c, c.of(c.all["b"].who, led), "it never worked alone")
		require.Equal(c, 2*4*60, c.net.messages(time.Minute), "2·(n−1) per Interval")
	})
}

func TestEachPartHasAGroupAndTheyMerge(t *testing.T) {
	fake(t, 5, func(c *cluster) {
		c.startAll()
		c.merges(c.opts.Merged(), c.opts.Peers...)
		whole := c.group("a").Number

		c.net.lose(parts([]string{"a", "b"}))
		took := c.merges(c.opts.Merged(), "a", "b")
		took += c.merges(c.opts.Merged(), "c", "d", "e")
		c.Log("parted:", took)
		require.Equal(c, "c", c.group("e").Leader)
		require.NotEqual(c, c.group("a").Number, c.group("c").Number)
		time.Sleep(time.Hour)
		require.True(c, c.together(c.all["a"].who, c.all["b"].who), "it stays so")
		require.NotEqual(c, whole, c.group("a").Number)

		c.net.lose(nil)
		took = c.merges(c.opts.Merged(), c.opts.Peers...)
		c.Log("healed:", took)
		require.Less(c, took, 9*time.Second, "a look is due each 5 to 7.5 intervals")
		require.Equal(c, "c", c.group("a").Leader, "the larger group's")
	})
}

func TestWhoIsCutOffIsAGroupOfItsOwn(t *testing.T) {
	for name, lost := range map[string]func(from, to string) bool{
		"in both directions":   func(from, to string) bool { return from == "b" || to == "b" },
		"what it sends":        func(from, _ string) bool { return from == "b" },
		"what is sent to it":   func(_, to string) bool { return to == "b" },
		"but for its follower": func(from, to string) bool { return from+to == "ba" || from+to == "ab" },
	} {
		t.Run(name, func(t *testing.T) {
			fake(t, 3, func(c *cluster) {
				c.startAll()
				c.merges(c.opts.Merged(), "a", "b", "c")
				c.net.lose(lost)
				time.Sleep(c.opts.Merged())
				before := len(c.history())
				time.Sleep(time.Hour)
				require.Len(c, c.history(), before, "groups do not change without need")
				require.NotEqual(c, c.group("a").Number, c.group("b").Number)
				c.net.lose(nil)
				c.merges(c.opts.Merged(), "a", "b", "c")
			})
		})
	}
}

// history are all notes.
func (c *cluster) history() []note { return c.chronicle.all() }

func TestMembersGoOnWithoutALeaderThatCrashed(t *testing.T) {
	fake(t, 4, func(c *cluster) {
		c.startAll()
		c.merges(c.opts.Merged(), c.opts.Peers...)
		c.crash("a")
		took := c.merges(c.opts.Merged(), "b", "c", "d")
		c.Log("crashed:", took)
		require.Greater(c, took, 2*time.Second, "it is not missed before")
		require.Less(c, took, c.opts.Silence()+4*time.Second)
		require.Equal(c, "b", c.group("d").Leader)

		c.start("a", obey)
		c.Log("back:", c.merges(c.opts.Merged(), c.opts.Peers...))
		require.Equal(c, "b", c.group("a").Leader)
	})
}

func TestALeaderThatQuitsIsNotMissedFirst(t *testing.T) {
	fake(t, 3, func(c *cluster) {
		c.startAll()
		c.merges(c.opts.Merged(), c.opts.Peers...)
		a := c.all["a"]
		require.NoError(c, a.quit())
		delete(c.all, "a")
		require.ErrorIs(c, a.ran, context.Canceled)
		took := c.merges(c.opts.Silence(), "b", "c")
		c.Log(took)
		require.Less(c, took, 2*time.Second)
	})
}

// slow is work that takes a while to stop.
func slow(d time.Duration) work {
	return func(ctx context.Context, _ group.Group) error {
		<-ctx.Done()
		time.Sleep(d)
		return nil
	}
}

func TestAMergeWaitsForTheWorkOfBothLeaders(t *testing.T) {
	const lasts = 8 * time.Second
	for _, id := range []string{"a", "c"} {
		t.Run("that of "+id, func(t *testing.T) {
			fake(t, 4, func(c *cluster) {
				c.net.lose(parts([]string{"a", "b"}))
				for _, other := range c.opts.Peers {
					do := obey
					if other == id {
						do = slow(lasts)
					}
					c.start(other, do)
				}
				c.merges(c.opts.Merged(), "a", "b")
				c.merges(c.opts.Merged(), "c", "d")
				c.net.lose(nil)
				who := c.all[id].who
				for len(c.of(who, told)) == 0 {
					time.Sleep(time.Millisecond)
				}
				took := c.merges(c.opts.Merged(), c.opts.Peers...)
				require.GreaterOrEqual(c, took, lasts-10*time.Millisecond)
				require.Less(c, took, lasts+2*time.Second)
				require.Len(c, c.of(who, done), 1)
			})
		})
	}
}

func TestWorkThatDoesNotStopIsLeftOut(t *testing.T) {
	fake(t, 4, func(c *cluster) {
		c.net.lose(parts([]string{"a", "b"}))
		for _, id := range []string{"a", "b", "d"} {
			c.start(id, obey)
		}
		stop := make(chan struct{})
		c.start("c", func(context.Context, group.Group) error { <-stop; return nil })
		c.merges(c.opts.Merged(), "a", "b")
		c.merges(c.opts.Merged(), "c", "d")
		c.net.lose(nil)
		c.merges(c.opts.Merged(), "a", "b", "d")
		time.Sleep(time.Hour)
		require.Empty(c, c.group("c").Number, "it is in no group before its work has returned")
		close(stop)
		c.merges(c.opts.Merged(), c.opts.Peers...)
	})
}

func TestRunReturnsWhatLeadDoesWhileTheGroupLasts(t *testing.T) {
	fake(t, 2, func(c *cluster) {
		failed := errors.New("the work has failed")
		a := c.start("a", func(context.Context, group.Group) error { return failed })
		c.start("b", obey)
		time.Sleep(c.opts.Merged())
		synctest.Wait()
		require.Equal(c, failed, a.ran)
		require.Equal(c, []string{"a", "b"}, c.group("a").Members, "it is a member still")

		again := make(chan group.Group, 1)
		err := a.Run(c.Context(), func(_ context.Context, g group.Group) error { again <- g; return nil })
		require.NoError(c, err)
		require.Equal(c, c.group("a").Number, (<-again).Number, "another Run leads the group that there is")
	})
}

func TestARunThatLeadsNothingEndsWithItsContext(t *testing.T) {
	fake(t, 2, func(c *cluster) {
		c.startAll()
		c.merges(c.opts.Merged(), "a", "b")
		m := c.all["b"]
		m.cancel()
		synctest.Wait()
		require.ErrorIs(c, m.ran, context.Canceled)
		cause := errors.New("it is late")
		ctx, cancel := context.WithTimeoutCause(c.Context(), time.Second, cause)
		defer cancel()
		require.Equal(c, cause, m.Run(ctx, obey))
		require.Equal(c, cause, m.Run(ctx, obey), "it has ended before")
	})
}

func TestARunWhoseContextHasEndedReturnsItsCauseWhateverLeadSays(t *testing.T) {
	fake(t, 1, func(c *cluster) {
		cause := errors.New("it is late")
		ctx, cancel := context.WithTimeoutCause(c.Context(), time.Minute, cause)
		defer cancel()
		require.Equal(c, cause, c.member("a").Run(ctx, func(ctx context.Context, _ group.Group) error {
			<-ctx.Done()
			require.Equal(c, cause, context.Cause(ctx))
			return errors.New("which is dropped")
		}))
	})
}

func TestWhatWaitsForAGroupEndsWhenTheMemberIsClosed(t *testing.T) {
	fake(t, 2, func(c *cluster) {
		a := c.start("a", obey) // it is in no group yet
		synctest.Wait()
		require.Len(c, c.history(), 1)
		require.Zero(c, c.history()[0].Group)
		require.NoError(c, a.Close())
		a.calls.Wait()
		require.ErrorIs(c, a.ran, group.ErrClosed)
		require.Len(c, c.history(), 1)
	})
}

func TestTheContextOfWorkSaysWhyItHasEnded(t *testing.T) {
	fake(t, 2, func(c *cluster) {
		causes := make(chan error, 3)
		do := func(ctx context.Context, _ group.Group) error {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return errors.New("which is dropped")
		}
		a := c.start("a", do)
		time.Sleep(time.Minute)
		c.start("b", obey)
		c.merges(c.opts.Merged(), "a", "b")
		require.EqualError(c, <-causes, "group: the group is over")
		require.NoError(c, a.Close())
		require.ErrorIs(c, <-causes, group.ErrClosed)
		synctest.Wait()
		require.ErrorIs(c, a.ran, group.ErrClosed)
		require.ErrorIs(c, a.Run(c.Context(), obey), group.ErrClosed)
		require.NoError(c, a.Close(), "again")
		for g := range a.Watch(c.Context()) {
			require.Zero(c, g)
		}
	})
}

func TestLeadMayCloseTheMember(t *testing.T) {
	fake(t, 1, func(c *cluster) {
		m := c.member("a")
		require.ErrorIs(c, m.Run(c.Context(), func(context.Context, group.Group) error { return m.Close() }), group.ErrClosed)
	})
}

func TestWorkThatPanicsHoldsNothingUp(t *testing.T) {
	fake(t, 2, func(c *cluster) {
		m := c.member("a")
		require.PanicsWithValue(c, "oh", func() {
			_ = m.Run(c.Context(), func(ctx context.Context, _ group.Group) error {
				c.start("b", obey)
				<-ctx.Done()
				panic("oh")
			})
		})
		c.all["a"] = act(m, "a#1", c.note, obey)
		c.merges(c.opts.Merged(), "a", "b")
	})
}

func TestOneRunAtATime(t *testing.T) {
	fake(t, 1, func(c *cluster) {
		c.startAll()
		synctest.Wait()
		require.ErrorContains(c, c.all["a"].Run(c.Context(), obey), "Run is under way already: one call at a time leads")
		require.ErrorContains(c, c.all["a"].Run(c.Context(), nil), "lead is nil")
		require.NoError(c, c.all["a"].quit())
		require.ErrorIs(c, c.all["a"].Run(c.Context(), obey), group.ErrClosed, "and none is under way")
	})
}

func TestAWatchThatIsSlowGetsTheNewest(t *testing.T) {
	fake(t, 3, func(c *cluster) {
		c.startAll()
		c.merges(c.opts.Merged(), c.opts.Peers...)
		var seen []int
		for g := range c.all["c"].Watch(c.Context()) {
			if seen = append(seen, len(g.Members)); len(seen) == 2 {
				break
			}
			for range 3 {
				c.net.lose(parts([]string{"a"}, []string{"b"}))
				time.Sleep(c.opts.Merged())
				c.net.lose(nil)
				time.Sleep(c.opts.Merged())
			}
			c.net.lose(parts([]string{"c"}))
			time.Sleep(c.opts.Merged())
		}
		require.Equal(c, []int{3, 1}, seen)
		c.net.lose(nil)
		c.merges(c.opts.Merged(), c.opts.Peers...)
	})
}

func TestWhatIsDoneToAGroupIsDoneToNobodyElses(t *testing.T) {
	fake(t, 2, func(c *cluster) {
		c.startAll()
		c.merges(c.opts.Merged(), "a", "b")
		for g := range c.all["a"].Watch(c.Context()) {
			g.Members[0] = "x"
			break
		}
		for g := range c.all["a"].Watch(c.Context()) {
			require.Equal(c, []string{"a", "b"}, g.Members)
			break
		}
	})
}

func TestPeersThatComeLaterAreFound(t *testing.T) {
	fake(t, 0, func(c *cluster) {
		all := []string{"a:1", "b:1", "c:1"}
		for _, id := range all {
			c.opts.Peers = []string{id}
			c.start(id, obey)
		}
		time.Sleep(time.Minute)
		for _, id := range all {
			require.Equal(c, []string{id}, c.group(id).Members)
		}
		require.Zero(c, c.net.messages(time.Hour), "there is nobody to look for")

		require.NoError(c, c.all["a:1"].SetPeers([]string{"B:1", "c:1"}))
		c.merges(c.opts.Merged(), all...)
		require.Equal(c, all, c.group("c:1").Members)
		require.ErrorContains(c, c.all["a:1"].SetPeers([]string{"b"}), `group: peers: member "b" is not host:port`)
		require.ErrorContains(c, c.all["a:1"].SetPeers(addresses(group.MaxPeers)), "group: peers: 65 processes: want at most 64")
	})
}
