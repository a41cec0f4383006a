package paxoskv_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	paxoskv "github.com/electkv/election/backends/paxos"
	"github.com/electkv/election/backends/paxos/internal/lease"
)

const electionTTL = 2 * time.Second

// A book has every term that there was, and watches over them.
type book struct {
	noHeir bool // what candidates are told

	t *testing.T

	mu      sync.Mutex
	leading int // the member that leads, -1 if none
	token   uint64
	terms   chan int // whoever is elected
}

// campaign has a member stand until ctx ends.
func (b *book) campaign(ctx context.Context, store *paxoskv.Store, who int) {
	candidate, err := election.New(store, "election", &election.Options{ID: fmt.Sprint(who), TTL: electionTTL, NoHeir: b.noHeir})
	require.NoError(b.t, err)
	for ctx.Err() == nil {
		err := candidate.Run(ctx, func(ctx context.Context, term *election.Term) error {
			b.mu.Lock()
			if b.leading != -1 {
				b.t.Errorf("%d leads beside %d", who, b.leading)
			}
			if term.Token() <= b.token {
				b.t.Errorf("token %d after %d", term.Token(), b.token)
			}
			b.leading, b.token = who, term.Token()
			b.mu.Unlock()
			b.terms <- who
			<-ctx.Done()
			b.mu.Lock()
			b.leading = -1
			b.mu.Unlock()
			return ctx.Err()
		})
		if err != nil && ctx.Err() == nil && errors.Is(err, context.Canceled) {
			b.t.Error(err)
		}
	}
}

// elects runs f while all members of a new cluster stand.
func elects(t *testing.T, members int, f func(t *testing.T, c *cluster, b *book)) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, members, paxoskv.Options{MaxTTL: 10 * time.Second})
		b := &book{t: t, leading: -1, terms: make(chan int, 100)}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i, s := range c.members {
			all.Go(func() { b.campaign(ctx, s, i) })
		}
		f(t, c, b)
		cancel()
		all.Wait()
	})
}

// next is whoever is elected next, and how long that took.
func (b *book) next() (who int, took time.Duration) {
	start := time.Now()
	select {
	case who = <-b.terms:
	case <-time.After(time.Minute):
		require.Fail(b.t, "nobody is elected")
	}
	return who, time.Since(start)
}

// mutes has the network carry nothing to or from the members that f names.
func (c *cluster) mutes(f func(i int) bool) {
	apart := map[lease.MemberID]bool{}
	for i, id := range c.ids {
		apart[lease.MemberID(id)] = f(i)
	}
	c.net.lose(func(from, to lease.MemberID) bool { return apart[from] != apart[to] })
}

// The next leader comes when the members' leases have passed, counted from the last
// refresh, and a candidate has looked.
const takeover = electionTTL + electionTTL/2

func TestAMemberThatDiesIsReplacedWithinItsTTL(t *testing.T) {
	elects(t, 3, func(t *testing.T, c *cluster, b *book) {
		for range 3 {
			leader, _ := b.next()
			time.Sleep(5 * electionTTL)
			c.net.lose(func(from, to lease.MemberID) bool {
				return from == lease.MemberID(c.ids[leader]) || to == lease.MemberID(c.ids[leader])
			})
			next, took := b.next()
			require.NotEqual(t, leader, next)
			require.Less(t, took, takeover)
			t.Logf("taken over after %v", took)
			b.terms <- next // the next round begins with it
			c.net.lose(nil)
			time.Sleep(electionTTL)
		}
	})
}

func TestALeaderInTheMinorityStopsBeforeTheMajorityElects(t *testing.T) {
	elects(t, 5, func(t *testing.T, c *cluster, b *book) {
		leader, _ := b.next()
		time.Sleep(3 * electionTTL)
		friend := (leader + 1) % 5
		c.mutes(func(i int) bool { return i == leader || i == friend })
		next, took := b.next() // the book says if both lead
		require.NotContains(t, []int{leader, friend}, next)
		require.Less(t, took, takeover)
		c.net.lose(nil)
		time.Sleep(5 * electionTTL)
		require.Empty(t, b.terms, "nobody leads anew when the others are back")
	})
}

func TestNobodyLeadsWithoutAMajority(t *testing.T) {
	elects(t, 5, func(t *testing.T, c *cluster, b *book) {
		leader, _ := b.next()
		time.Sleep(electionTTL)
		third := func(i int) int { return (i - leader + 5) % 5 / 2 } // two, two and one
		group := map[lease.MemberID]int{}
		for i, id := range c.ids {
			group[lease.MemberID(id)] = third(i)
		}
		c.net.lose(func(from, to lease.MemberID) bool { return group[from] != group[to] })
		time.Sleep(10 * electionTTL)
		require.Empty(t, b.terms)
		b.mu.Lock()
		require.Equal(t, -1, b.leading)
		b.mu.Unlock()
		c.net.lose(nil)
		_, took := b.next()
		require.Less(t, took, 3*electionTTL)
	})
}

// One way is enough to stop a leader: what it hears of nobody is no proof.
func TestALeaderThatIsHeardButHearsNothingStops(t *testing.T) {
	elects(t, 3, func(t *testing.T, c *cluster, b *book) {
		leader, _ := b.next()
		time.Sleep(electionTTL)
		own := lease.MemberID(c.ids[leader])
		c.net.lose(func(from, to lease.MemberID) bool { return to == own && from != own })
		next, took := b.next()
		require.NotEqual(t, leader, next)
		require.Less(t, took, 3*electionTTL)
	})
}

func TestALossyNetworkElectsOneAtATime(t *testing.T) {
	elects(t, 3, func(t *testing.T, c *cluster, b *book) {
		n := 0
		c.net.lose(func(lease.MemberID, lease.MemberID) bool { n++; return n*7919%100 < 30 })
		b.next()
		time.Sleep(30 * electionTTL)
	})
}

func TestMembersThatRestartSayNothingUntilTheirQuarantineIsOver(t *testing.T) {
	elects(t, 3, func(t *testing.T, c *cluster, b *book) {
		leader, _ := b.next()
		time.Sleep(electionTTL)
		// The two others are restarted: they know of no leader, and could make one.
		for i := range 3 {
			if i != leader {
				require.NoError(t, c.members[i].Close())
				c.start(i)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := c.members[(leader+1)%3].Get(ctx, "election")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "quarantine")
		b.mu.Lock()
		require.Equal(t, -1, b.leading, "a leader whose leases cannot be refreshed stops")
		b.mu.Unlock()
		who, took := b.next()
		require.Equal(t, leader, who, "the only one who still stands")
		require.Less(t, took, c.members[(leader+1)%3].Status().QuarantineAfterStart+3*electionTTL)
	})
}

func TestMessagesOfARefreshAndOfWaiting(t *testing.T) {
	// A refresh: three prepares, promises, proposals and acceptances, one's own
	// among them, and two that tell. One each third of the TTL, and a look of
	// each who waits every five seconds: six messages.
	const leader, waiting = 3 * 14, 3*6*electionTTL/(3750*time.Millisecond) + 6
	// The heir refreshes as well, and looks at the leader's record; the leader waits for
	// changes of the heir's.
	const heir = 3*14 + 3*6 + waiting
	t.Run("without an heir", func(t *testing.T) { messagesWithin(t, &book{noHeir: true}, float64(leader+waiting)) })
	t.Run("with one", func(t *testing.T) { messagesWithin(t, &book{}, float64(leader+waiting+heir)) })
}

func messagesWithin(t *testing.T, b *book, most float64) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, paxoskv.Options{MaxTTL: time.Minute})
		b.t, b.leading, b.terms = t, -1, make(chan int, 10)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i, s := range c.members {
			all.Go(func() { b.campaign(ctx, s, i) })
		}
		b.next()
		time.Sleep(time.Second)
		before := c.net.sent.Load()
		const terms = 30
		time.Sleep(terms * electionTTL)
		n := float64(c.net.sent.Load()-before) / terms
		t.Logf("%.1f messages per TTL of %v, of a leader and two who wait", n, electionTTL)
		require.LessOrEqual(t, n, most)
		cancel()
		all.Wait()
	})
}
