package paxoskv_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	paxoskv "github.com/electkv/election/backends/paxos"
	"github.com/electkv/election/backends/paxos/internal/lease"
	"github.com/electkv/election/kv"
)

// intruder is whoever holds a certificate of a client's.
const intruder = lease.MemberID("client/666")

// wilds are counters that nobody comes to by use or by clock.
var wilds = []uint64{math.MaxUint64, math.MaxUint64 - 10_000, lease.MaxCounter + 1, lease.MaxCounter, lease.Seeds + 1, lease.Seeds}

// leftovers is how long that which a member has left with a minority, when it vanished,
// may be in the way of others.
const leftovers = 10 * time.Second

// works has each member lead for a moment, and returns the largest token.
func (c *cluster) works(token uint64, within time.Duration) uint64 {
	c.Helper()
	for i, m := range c.members {
		ctx, cancel := context.WithTimeout(c.Context(), within)
		rec, err := m.Create(ctx, "s", kv.Record{Signature: fmt.Sprint("by ", i), TTL: 5 * time.Second})
		require.NoError(c, err)
		require.Greater(c, rec.Token, token)
		token = rec.Token
		rec, err = m.Refresh(ctx, "s", rec)
		require.NoError(c, err)
		require.NoError(c, m.Delete(ctx, "s", rec))
		cancel()
	}
	return token
}

func TestAWildCounterStopsNobody(t *testing.T) {
	for _, wild := range wilds {
		for to := 1; to <= 3; to++ {
			for _, durable := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					c := newDurable(t, 3, durable)
					token := c.works(0, 10*time.Second)
					evil := c.net.port(intruder)
					for _, id := range c.ids[:to] {
						b := lease.Ballot{Counter: wild, Proposer: intruder, Incarnation: 1}
						evil.Send(lease.MemberID(id), lease.Prepare{Safe: "s", Ballot: b})
						evil.Send(lease.MemberID(id), lease.Prepare{Safe: "s", Ballot: b})
					}
					synctest.Wait()
					token = c.works(token, 10*time.Second)
					for i := range c.members {
						require.NoError(t, c.members[i].Close())
						c.start(i)
						time.Sleep(c.members[i].Quarantined())
						token = c.works(token, 10*time.Second)
					}
				})
			}
		}
	}
}

// newDurable starts members that wait out their quarantine, with folders or without.
func newDurable(t *testing.T, n int, durable bool) *cluster {
	c := &cluster{TB: t, net: newNetwork(), members: make([]*paxoskv.Store, n), opts: paxoskv.Options{MaxTTL: 5 * time.Second}}
	for i := range n {
		c.ids = append(c.ids, fmt.Sprintf("member-%d", i))
		if durable {
			c.dirs = append(c.dirs, t.TempDir())
		}
	}
	for i := range n {
		c.start(i)
	}
	time.Sleep(c.members[0].Quarantined())
	return c
}

// The intruder leads two members away, one farther than the other. What took it a
// minute takes no longer to mend.
func TestAnAttackIsOverSoonAfterItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newDurable(t, 3, true)
		token := c.works(0, 10*time.Second)
		evil := c.net.port(intruder)
		const seconds = 60
		for s := range seconds {
			for i, id := range c.ids {
				if s >= seconds*i/3 {
					continue
				}
				at := lease.Ballot{Counter: lease.Seeds + uint64(s)<<25, Proposer: intruder, Incarnation: uint64(s)}
				evil.Send(lease.MemberID(id), lease.Prepare{Safe: "s", Ballot: lease.Ballot{Counter: lease.MaxCounter, Proposer: intruder}})
				evil.Send(lease.MemberID(id), lease.Prepare{Safe: "s", Ballot: at})
			}
			time.Sleep(time.Second)
		}
		c.works(token, seconds*time.Second)
	})
}

// A member that was restarted, and remembers nothing, goes at once to where a majority
// is, and votes with it.
func TestANewcomerGoesWhereTheMajorityIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newDurable(t, 3, false)
		token := c.works(0, 10*time.Second)
		evil := c.net.port(intruder)
		for s := range 120 {
			for _, id := range c.ids {
				at := lease.Ballot{Counter: lease.Seeds + uint64(s)<<25, Proposer: intruder, Incarnation: uint64(s)}
				evil.Send(lease.MemberID(id), lease.Prepare{Safe: "s", Ballot: at})
			}
			time.Sleep(time.Second)
		}
		require.NoError(t, c.members[0].Close())
		c.start(0)
		time.Sleep(c.members[0].Quarantined())
		token = c.works(token, 10*time.Second)
		require.Greater(t, token, uint64(lease.Seeds+100<<25), "the attack did nothing")
		require.NoError(t, c.members[1].Close())
		time.Sleep(leftovers)
		c.members = []*paxoskv.Store{c.members[0], c.members[2]}
		c.works(token, 10*time.Second)
	})
}

// A member that says that it has promised everything is like one that is gone.
func TestAMemberThatClaimsToBeAtTheEndLeadsNobodyThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newDurable(t, 3, true)
		token := c.works(0, 10*time.Second)
		require.NoError(t, c.members[2].Close())
		time.Sleep(leftovers)
		liar := c.net.port("member-2")
		require.NoError(t, liar.Listen(func(from lease.MemberID, m lease.Message) {
			switch m := m.(type) {
			case lease.Query:
				liar.Send(from, lease.Answer{Safe: m.Safe, Asker: m.Asker, Promised: lease.MaxCounter})
			case lease.Prepare:
				liar.Send(from, lease.Refusal{Safe: m.Safe, Ballot: m.Ballot, Promised: lease.MaxCounter})
			}
		}))
		defer liar.Close()
		c.members = c.members[:2]
		for range 100 {
			token = c.works(token, 10*time.Second)
			time.Sleep(time.Second)
		}
		require.Less(t, token, uint64(lease.Seeds+1<<34))
	})
}

// A message that speaks for another is none: nobody takes back what a member has
// proposed but that member.
func TestNobodyRetractsForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newDurable(t, 3, false)
		rec, err := c.members[0].Create(t.Context(), "s", kv.Record{Signature: "me", TTL: 5 * time.Second})
		require.NoError(t, err)
		evil := c.net.port(intruder)
		for _, id := range c.ids {
			for incarnation := range c.starts + 1 {
				evil.Send(lease.MemberID(id), lease.Retract{Safe: "s", Ballot: lease.Ballot{Counter: rec.Token, Proposer: "member-0", Incarnation: incarnation}})
			}
		}
		synctest.Wait()
		got, err := c.members[1].Get(t.Context(), "s")
		require.NoError(t, err)
		require.Equal(t, rec, got)
	})
}

// Members believe a message that gives a safe to somebody else, or to nobody, for ever,
// but only until their next look.
func TestFalseNewsAreCorrected(t *testing.T) {
	for name, state := range map[string]lease.State{
		"nobody leads":    {},
		"somebody leads":  {Tenure: lease.Ballot{Counter: 1}, Signature: "the intruder", TTL: time.Second},
		"he has a record": {Tenure: lease.Ballot{Counter: lease.MaxCounter}, Signature: "the intruder", TTL: time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newDurable(t, 3, false)
			rec, err := c.members[0].Create(t.Context(), "s", kv.Record{Signature: "me", TTL: 5 * time.Second})
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
			defer cancel()
			evil := c.net.port(intruder)
			var seen []string
			for got, err := range c.members[1].Watch(ctx, "s") {
				if len(seen) == 0 {
					require.Equal(t, rec, got)
					for _, id := range c.ids {
						evil.Send(lease.MemberID(id), lease.Commit{Safe: "s", Ballot: lease.Ballot{Counter: lease.MaxCounter, Proposer: intruder}, State: state, Life: lease.MaxSpan})
					}
				}
				seen = append(seen, got.Signature)
				if len(seen) > 1 && got == rec { // true again
					break
				}
				require.True(t, err == nil || errors.Is(err, kv.ErrVacant), "%v", err)
			}
			require.NoError(t, ctx.Err(), "%s: %v", name, seen)
			require.Equal(t, []string{"me", state.Signature, "me"}, seen, name)
		})
	}
}
