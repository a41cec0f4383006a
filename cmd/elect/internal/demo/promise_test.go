//go:build unix

package demo_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/cmd/elect/internal/demo"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
)

// in has a process be in a group, named as leader/anything, of some members, at a time in seconds.
func (r record) in(at float64, who, number, members string) record {
	return r.add(at, history.Event{Who: who, Kind: history.Joined, Group: groupOf(number, members)})
}

// works has a process do the work of a group's leader for a time.
func (r record) works(from, to float64, who, number, members string) record {
	g := groupOf(number, members)
	r = r.add(from, history.Event{Who: who, Kind: history.Started, Group: g})
	return r.add(to, history.Event{Who: who, Kind: history.Finished, Group: g})
}

func (r record) starts(at float64, who string) record {
	return r.add(at, history.Event{Who: who, Kind: history.Ready})
}

// owes has the network be so that there are groups within 3 s, and 1 s for a slow machine.
func (r record) owes(at float64, groups string) record {
	return r.add(at, history.Event{Kind: history.Grouped, Value: groups, Within: 3 * time.Second})
}

func groupOf(number, members string) history.Group {
	leader, _, _ := strings.Cut(number, "/")
	return history.Group{Number: number, Leader: leader, Members: strings.Fields(members)}
}

// together is two processes that are alone first, then merge, are parted, and merge again.
func together() record {
	return record{}.owes(0, "a | b").starts(0, "a").starts(0, "b").
		in(1, "a", "a/1", "a").works(1, 4.9, "a", "a/1", "a").
		in(1.5, "b", "b/1", "b").works(1.5, 4.8, "b", "b/1", "b").
		owes(4, "a b").
		in(4.85, "b", "", "").in(4.95, "a", "", "").
		in(5, "a", "a/2", "a b").in(5.1, "b", "a/2", "a b").works(5, 9, "a", "a/2", "a b").
		owes(8, "a | b").
		in(9.1, "a", "a/3", "a").works(9.1, 12, "a", "a/3", "a").
		in(9.3, "b", "b/3", "b").works(9.3, 12, "b", "b/3", "b").
		owes(12, "a b").
		in(13, "b", "a/4", "a b").in(13.2, "a", "a/4", "a b").works(13.3, 20, "a", "a/4", "a b")
}

// rules are those by which a meeting is judged.
func rules() map[string]oracle.Rule {
	return map[string]oracle.Rule{
		"one leader per number": demo.LeaderPerNumber, "its members agree": demo.MembersAgree,
		"out of one, into the next": demo.OneAfterAnother, "one group per part": demo.GroupPerPart,
	}
}

func TestAMeetingIsJudgedByAllRules(t *testing.T) {
	found := (&demo.Meeting{}).Judge(history.History{Events: together(), About: history.About{Slack: time.Second}})
	require.Len(t, found, len(rules()))
	for _, f := range found {
		require.Equal(t, oracle.Kept, f.Verdict, "%s: %s", f.Promise, f.Detail)
		require.Contains(t, rules(), f.Promise)
	}
	for promise, rule := range rules() {
		require.Equal(t, oracle.Silent, record{}.judge(rule).Verdict, promise)
	}
	late, _ := found.Of("one group per part")
	require.Equal(t, "4 times, within 1.50 s; promised within 3s", late.Detail)
}

// Each of the others keeps its verdict, so it is that rule which finds it.
func TestEachPromiseOfGroupsCanBeSeenBroken(t *testing.T) {
	for what, test := range map[string]struct {
		promise string
		lie     record
		detail  string
	}{
		"two lead": {"one leader per number",
			together().works(15, 16, "b", "a/4", "a b"), "a and b led group a/4"},
		"one leads twice": {"one leader per number",
			together().works(20.1, 21, "a", "a/4", "a b"), "a led group a/4 twice"},
		"another leader": {"its members agree",
			together().in(13.1, "b", "b/5", "a b").add(13.15, history.Event{Who: "a", Kind: history.Joined, Group: history.Group{Number: "b/5", Leader: "a", Members: []string{"a", "b"}}}),
			"of group b/5, b says that b leads a, b, and a that a leads a, b"},
		"other members": {"its members agree",
			together().in(13.1, "b", "b/5", "a b").in(13.15, "a", "b/5", "a b c"), "of group b/5, b says that b leads a, b, and a that b leads a, b, c"},
		"in, and not listed": {"its members agree",
			together().in(13.1, "b", "a/5", "a"), "b is in group a/5, in which a leads a"},
		"the leader is not listed": {"its members agree",
			together().in(13.1, "b", "a/5", "b"), "b is in group a/5, in which a leads b"},
		"works for another's": {"its members agree",
			together().works(15, 16, "b", "a/5", "a b"), "b works as the leader of group a/5, in which a leads a, b"},
		"in again": {"out of one, into the next",
			together().in(14, "b", "", "").in(15, "b", "a/4", "a b"), "b was in group a/4, left it, and was in it again"},
		"never started": {"out of one, into the next",
			together().in(2, "c", "c/1", "c"), "c was in a group before it was started"},
		"its work goes on": {"out of one, into the next",
			together().works(11, 13.05, "b", "b/7", "b"), "b still worked as the leader of group b/7 when group a/4, which it is in, began"},
		"late": {"one group per part",
			together().owes(14, "a | b").in(18.5, "b", "b/5", "b").works(18.5, 19, "b", "b/5", "b").
				in(18.1, "a", "a/5", "a").works(18.2, 19, "a", "a/5", "a"), "a | b: after 4.50 s; promised within 3s, and 1s for a slow machine"},
		"never": {"one group per part",
			together().owes(14, "a b c"), "a b c never had a group each"},
		"overtaken": {"one group per part",
			together().owes(14, "a b c").owes(15, "a b"), "a b c never had a group each"},
		"no leader works": {"one group per part",
			together().owes(20, "a b"), "a b never had a group each"},
	} {
		t.Run(what, func(t *testing.T) {
			found := (&demo.Meeting{}).Judge(history.History{Events: test.lie, About: history.About{Slack: time.Second}})
			f, ok := found.Of(test.promise)
			require.True(t, ok)
			require.Equal(t, oracle.Broken, f.Verdict, f.Detail)
			require.Equal(t, test.detail, f.Detail)
		})
	}
}

// What a killed process was doing is over when it is started again.
func TestAKilledProcessIsForgotten(t *testing.T) {
	r := together().add(13.5, history.Event{Who: "a", Kind: history.Killed}).owes(13.5, "b").
		in(14, "b", "b/5", "b").works(14, 16, "b", "b/5", "b").
		starts(15, "a").in(16.5, "a", "b/6", "a b").in(16.5, "b", "b/6", "a b").works(16.6, 18, "b", "b/6", "a b")
	r = slices.DeleteFunc(r, func(e history.Event) bool { return e.Kind == history.Finished && e.Group.Number == "a/4" })
	for promise, rule := range rules() {
		f := r.judge(rule)
		require.Equal(t, oracle.Kept, f.Verdict, "%s: %s", promise, f.Detail)
	}
}
