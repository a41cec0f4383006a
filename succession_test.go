package election_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/seam"
)

// orders are the provided ones.
var orders = seam.Orders()

func TestWhoComesBeforeWhom(t *testing.T) {
	for _, c := range []struct {
		order, why string
		leader     election.Contender
		came, want string // IDs; what is a number after one is its rank
	}{
		{"first", "nobody is displaced", contender("c9"), "b1 a2 c3", "b a c"},
		{"rank", "the highest comes first", contender("c"), "a1 b3 d2", "b d a"},
		{"rank", "the leader is compared like anybody", contender("b2"), "a1 b2 c3", "c b a"},
		{"rank", "an heir of the leader's rank does not come before it", contender("c2"), "c2 a2 b1", "c a b"},
		{"rank", "equals stay as they came", contender("x"), "c1 a1 b2 d1", "b c a d"},
		{"rank", "below zero is below zero", contender("x"), "a-1 b0 c-2", "b a c"},
		{"ring", "from the leader round", contender("c"), "a b c d e", "c d e a b"},
		{"ring", "after the largest comes the smallest", contender("e"), "d c b a", "a b c d"},
		{"ring", "before the smallest", contender("A"), "c b a", "a b c"},
		{"ring", "a leader between them need not be among them", contender("bb"), "c b a", "c a b"},
		{"ring", "by ID while nobody has led", contender(""), "c a b", "a b c"},
		{"ring", "ranks do not count", contender("b"), "a9 c1", "c a"},
		{"list", "as the leader lists them", contender("a", "d", "b"), "a b d", "a d b"},
		{"list", "who is not listed comes last, as they came", contender("a", "d"), "c b d", "d c b"},
		{"list", "the first place counts", contender("a", "d", "b", "d"), "b d", "d b"},
		{"list", "the last of two places does not", contender("a", "b", "d", "c", "b"), "c d b", "b d c"},
		{"list", "the leader is first wherever it lists itself", contender("b", "d", "b"), "d b", "b d"},
		{"list", "without a list as they came", contender(""), "c a b", "c a b"},
	} {
		t.Run(c.order+": "+c.why, func(t *testing.T) {
			require.Equal(t, c.want, line(orders[c.order], c.leader, c.came))
		})
	}
}

// Every order that is provided is one: a strict weak order for each leader, of its
// arguments alone.
func TestEachOrderIsAnOrder(t *testing.T) {
	for name, before := range orders {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			leader, a, b, c := anybody(t, "leader"), anybody(t, "a"), anybody(t, "b"), anybody(t, "c")
			heirs := slices.Clone(leader.Heirs)
			ab, bc, ac := before(leader, a, b), before(leader, b, c), before(leader, a, c)
			ba, cb, ca := before(leader, b, a), before(leader, c, b), before(leader, c, a)

			require.False(t, before(leader, a, a), "nobody comes before themselves")
			require.False(t, ab && ba, "nobody comes before who comes before them")
			if ab && bc {
				require.True(t, ac, "it is transitive")
			}
			if !ab && !ba && !bc && !cb {
				require.False(t, ac || ca, "so is being equal")
			}
			require.Equal(t, ab, before(leader, a, b), "it has no memory")
			require.Equal(t, heirs, leader.Heirs, "it changes nothing")
		}))
	}
}

func TestRanksAndFirstComersDoNotAskWhoLeads(t *testing.T) {
	for _, name := range []string{"first", "rank"} {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			a, b := anybody(t, "a"), anybody(t, "b")
			before := orders[name]
			require.Equal(t, before(election.Contender{}, a, b), before(anybody(t, "leader"), a, b))
		}))
	}
}

func TestOnlyRanksMakeALeaderGiveWay(t *testing.T) {
	t.Run("rank", rapid.MakeCheck(func(t *rapid.T) {
		leader, heir := anybody(t, "leader"), anybody(t, "heir")
		require.Equal(t, heir.Rank > leader.Rank, election.ByRank(leader, heir, leader))
	}))
	for _, name := range []string{"first", "ring", "list"} {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			leader, heir := anybody(t, "leader"), anybody(t, "heir")
			require.False(t, orders[name](leader, heir, leader))
		}))
	}
}

func TestRanksCountWhereTheyAreAskedForAlone(t *testing.T) {
	for _, name := range []string{"first", "ring", "list"} {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			leader, a, b := anybody(t, "leader"), anybody(t, "a"), anybody(t, "b")
			with := orders[name](leader, a, b)
			leader.Rank, a.Rank, b.Rank = 0, 0, 0
			require.Equal(t, orders[name](leader, a, b), with)
		}))
	}
}

// Whoever leads, the ring is the same: only where it begins changes, and it begins
// at the leader.
func TestARingIsARotationOfTheIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfDistinct(rapid.StringN(1, 3, -1), rapid.ID[string]).Draw(t, "IDs")
		if len(ids) == 0 {
			return
		}
		leader := election.Contender{ID: rapid.SampledFrom(ids).Draw(t, "leader")}
		round := slices.Clone(ids)
		slices.SortFunc(round, by(election.Ring, leader))
		require.Equal(t, leader.ID, round[0])

		slices.Sort(ids)
		start := slices.Index(ids, leader.ID)
		require.Equal(t, append(slices.Clone(ids[start:]), ids[:start]...), round)
	})
}

// Handed over to the next each time, the leadership comes to everybody before it
// comes to anybody again.
func TestARingGoesRoundAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfNDistinct(rapid.StringN(1, 3, -1), 2, 9, rapid.ID[string]).Draw(t, "IDs")
		leader, met := ids[0], []string{}
		for range ids {
			others := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == leader })
			leader = slices.MinFunc(others, by(election.Ring, election.Contender{ID: leader}))
			met = append(met, leader)
		}
		require.ElementsMatch(t, ids, met)
	})
}

// line sorts candidates that came in the order given.
func line(before election.Succession, leader election.Contender, came string) string {
	all := []election.Contender{}
	for text := range strings.FieldsSeq(came) {
		all = append(all, contender(text))
	}
	slices.SortStableFunc(all, func(a, b election.Contender) int { return compare(before, leader, a, b) })
	ids := []string{}
	for _, c := range all {
		ids = append(ids, c.ID)
	}
	return strings.Join(ids, " ")
}

// by compares candidates of whom nothing counts but the ID.
func by(before election.Succession, leader election.Contender) func(a, b string) int {
	return func(a, b string) int {
		return compare(before, leader, election.Contender{ID: a}, election.Contender{ID: b})
	}
}

func compare(before election.Succession, leader, a, b election.Contender) int {
	switch {
	case before(leader, a, b):
		return -1
	case before(leader, b, a):
		return 1
	}
	return 0
}

// contender reads a candidate from its ID and rank, "b3", and takes the heirs as they are.
func contender(text string, heirs ...string) election.Contender {
	id := strings.TrimRight(text, "-0123456789")
	c := election.Contender{ID: id, Heirs: heirs}
	for _, digit := range strings.TrimLeft(text[len(id):], "-") {
		c.Rank = 10*c.Rank + int(digit-'0')
	}
	if strings.Contains(text, "-") {
		c.Rank = -c.Rank
	}
	return c
}

// anybody draws a candidate, so that equals are frequent.
func anybody(t *rapid.T, label string) election.Contender {
	id := rapid.StringMatching(`[abc]{0,2}`)
	return election.Contender{
		ID:    id.Draw(t, label+"'s ID"),
		Rank:  rapid.IntRange(-2, 2).Draw(t, label+"'s rank"),
		Heirs: rapid.SliceOfN(id, 0, 4).Draw(t, label+"'s heirs"),
	}
}
