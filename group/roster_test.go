package group_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/group"
	"github.com/electkv/election/internal/testenv"
)

// lists has these processes hear that the roster lists those.
func (c *cluster) lists(who, listed []string) {
	c.Helper()
	for _, id := range who {
		require.NoError(c, c.all[id].SetRoster(listed))
	}
}

// startAlone starts processes that know nobody.
func (c *cluster) startAlone(ids ...string) {
	c.Helper()
	for _, id := range ids {
		c.opts.Peers = []string{id}
		c.start(id, obey)
	}
}

// startListed starts three processes that find each other by the roster.
func (c *cluster) startListed() (all []string) {
	c.Helper()
	all = []string{"a:1", "b:1", "c:1"}
	c.startAlone(all...)
	c.lists(all, all)
	c.merges(c.opts.Merged(), all...)
	return all
}

func TestProcessesThatARosterListsFindEachOther(t *testing.T) {
	fake(t, 0, func(c *cluster) {
		all := c.startListed()
		c.startAlone("d:1")
		c.lists([]string{"d:1"}, append(all, "d:1"))
		c.lists(all, append(all, "d:1"))
		c.merges(c.opts.Merged(), append(all, "d:1")...)
	})
}

// Its store may have ended its session, or lost everything.
func TestAMemberThatTheRosterHasLostStaysUntilTheGroupLosesIt(t *testing.T) {
	fake(t, 0, func(c *cluster) {
		all := c.startListed()
		before := len(c.history())
		c.lists(all, nil)
		time.Sleep(time.Hour)
		c.lists(all, []string{"b:1"})
		time.Sleep(time.Hour)
		require.Len(c, c.history(), before, "nobody's work was disturbed")

		c.crash("c:1")
		c.merges(c.opts.Merged(), "a:1", "b:1")
		for _, id := range []string{"a:1", "b:1"} {
			require.Equal(c, []string{"a:1", "b:1"}, c.net.knows(id), "who is neither in the roster nor in the group is forgotten")
		}
		require.Equal(c, 2*60, c.net.messages(time.Minute), "nobody looks for it")

		c.startAlone("c:1")
		c.lists([]string{"c:1"}, all)
		time.Sleep(time.Hour)
		require.Equal(c, []string{"a:1", "b:1"}, c.group("a:1").Members)
		c.lists(all, all)
		c.merges(c.opts.Merged(), all...)
	})
}

// While a leader is missed, its followers are in no group.
func TestMembersThatTheRosterHasLostGoOnWithoutTheirLeader(t *testing.T) {
	fake(t, 0, func(c *cluster) {
		all := c.startListed()
		c.crash(c.group("a:1").Leader)
		rest := slices.DeleteFunc(slices.Clone(all), func(id string) bool { return c.all[id] == nil })
		require.Eventually(c, func() bool {
			synctest.Wait()
			return c.group(rest[0]).Number == ""
		}, c.opts.Merged(), 10*time.Millisecond)
		c.lists(rest, nil)
		c.merges(c.opts.Merged(), rest...)
		require.Equal(c, rest, c.net.knows(rest[1]))
	})
}

func TestAGroupHeedsNeitherWhoComesNorWhoGoesOutsideIt(t *testing.T) {
	fake(t, 0, func(c *cluster) {
		all := c.startListed()
		before := len(c.history())
		for i := range 3600 {
			c.lists(all, append(addresses(i%60), all...))
			time.Sleep(time.Second)
		}
		require.Len(c, c.history(), before)
	})
}

func TestWhatIsNoAddressInARosterIsSkippedAndLoggedOnce(t *testing.T) {
	fake(t, 0, func(c *cluster) {
		said, heard := &testenv.Speech{}, 0
		news := func() string {
			all := said.String()
			defer func() { heard = len(all) }()
			return all[heard:]
		}
		c.opts = group.Options{ID: "a:1", Peers: []string{"a:1"}, Logger: slog.New(slog.NewTextHandler(said, &slog.HandlerOptions{Level: slog.LevelWarn}))}
		m, err := group.NewOn(c.opts, 1, c.net.port("a:1"))
		require.NoError(c, err)
		defer func() { require.NoError(c, m.Close()) }()
		hostile := []string{
			"", "nobody", "host-7", ":1", "x:", "x:0", "x:65536", "x:http", "x,y:1", "x y:1", "http://x:1/", "[::1]",
			"\xff\x00\x1b[31m", strings.Repeat("x", 1<<20) + ":1",
		}
		require.NoError(c, m.SetRoster(append(hostile, "B:1", "b:01", "b:1", "[::1]:7", "c:1")))
		require.Equal(c, []string{"[::1]:7", "a:1", "b:1", "c:1"}, c.net.knows("a:1"))
		log := news()
		require.Equal(c, 1, strings.Count(log, "level=WARN"), log)
		require.Contains(c, log, fmt.Sprintf(`first="" skipped=%d`, len(hostile)))

		time.Sleep(time.Minute) // it is a group of its own
		require.NoError(c, m.SetRoster(append(hostile, "d:1")))
		require.Equal(c, []string{"a:1", "d:1"}, c.net.knows("a:1"))
		require.Empty(c, news(), "they are known")
		require.NoError(c, m.SetRoster([]string{strings.Repeat("y", 1<<20)}))
		log = news()
		require.Contains(c, log, "first=yyy")
		require.Less(c, len(log), 1<<10)
	})
}

func TestARosterOfTenThousandIsRefusedAndNothingIsLost(t *testing.T) {
	fake(t, 0, func(c *cluster) {
		all := c.startListed()
		before := len(c.history())
		for _, id := range all {
			err := c.all[id].SetRoster(append(addresses(10_000), all...))
			require.EqualError(c, err, "group: roster: 10003 processes: want at most 64; the peers stay as they were")
			require.Equal(c, all, c.net.knows(id))
		}
		time.Sleep(time.Hour)
		require.Len(c, c.history(), before)
		c.startAlone("d:1")
		four := append(all, "d:1")
		c.lists(four, four)
		c.merges(c.opts.Merged(), four...)
	})
}

// So who may write to the roster parts no group.
func TestMembersThatARosterHasLostGiveNoRoomUntilTheGroupHasLostThem(t *testing.T) {
	fake(t, 0, func(c *cluster) {
		two := []string{"a:1", "b:1"}
		c.startAlone(two...)
		c.lists(two, two)
		c.merges(c.opts.Merged(), two...)
		listed := append(addresses(group.MaxPeers-2), "a:1")
		c.lists([]string{"a:1"}, listed)
		require.Len(c, c.net.knows("a:1"), group.MaxPeers)
		require.Contains(c, c.net.knows("a:1"), "b:1")
		listed = append(addresses(group.MaxPeers-1), "a:1")
		require.ErrorContains(c, c.all["a:1"].SetRoster(listed), "group: roster: 65 processes: want at most 64; the peers stay")
		require.NotContains(c, c.net.knows("a:1"), listed[62])
		before := len(c.history())
		time.Sleep(time.Hour)
		require.Len(c, c.history(), before)
		c.crash("b:1")
		c.merges(c.opts.Merged(), "a:1")
		require.ElementsMatch(c, listed, c.net.knows("a:1"))
	})
}

func TestAListTakesThePlaceOfARoster(t *testing.T) {
	fake(t, 0, func(c *cluster) {
		all := c.startListed()
		require.NoError(c, c.all["a:1"].SetPeers([]string{"b:1"}))
		require.NotContains(c, c.net.knows("a:1"), "c:1", "as it says")
		require.NoError(c, c.all["a:1"].SetPeers(append(addresses(3), all...)))
		c.crash("c:1")
		c.merges(c.opts.Merged(), "a:1", "b:1")
		require.Len(c, c.net.knows("a:1"), 6)
	})
}
