package paxoskv_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	paxoskv "github.com/electkv/election/backends/paxos"
	"github.com/electkv/election/backends/paxos/internal/lease"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// answering has a member be played, so that it answers each message as f does.
func (c *cluster) answering(i int, f func(m lease.Message) lease.Message) {
	c.Helper()
	require.NoError(c, c.members[i].Close())
	p := c.net.port(lease.MemberID(c.ids[i]))
	c.Cleanup(func() { _ = p.Close() })
	require.NoError(c, p.Listen(func(from lease.MemberID, m lease.Message) {
		if answer := f(m); answer != nil {
			p.Send(from, answer)
		}
	}))
}

func TestAnErrorSaysWhatEachMemberHasSaid(t *testing.T) {
	refuse := func(b lease.Ballot, promised uint64) lease.Message {
		return lease.Refusal{Safe: "t", Ballot: b, Promised: promised}
	}
	for want, say := range map[string]func(m lease.Message) lease.Message{
		"no majority answers: 2 of 3 members must agree, and 1 answered; member-0 answered that it knows of nothing; member-1 has not answered: is it in quarantine?; member-2 has not": nil,
		"member-1 promised, and has not said whether it accepts": func(m lease.Message) lease.Message {
			if p, ok := m.(lease.Prepare); ok {
				return lease.Promise{Safe: "t", Ballot: p.Ballot, Acceptor: 1}
			}
			return nil
		},
		"; member-1 refused: it has promised a later attempt; member-2 refused: it has promised a later attempt": func(m lease.Message) lease.Message {
			if p, ok := m.(lease.Prepare); ok {
				return refuse(p.Ballot, p.Ballot.Counter+1)
			}
			return nil
		},
		"member-1 refused: counter ": func(m lease.Message) lease.Message {
			if p, ok := m.(lease.Prepare); ok {
				return refuse(p.Ballot, 7)
			}
			return nil
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newDurable(t, 3, false)
			answer := func(m lease.Message) lease.Message {
				if q, ok := m.(lease.Query); ok && say != nil {
					return lease.Answer{Safe: "t", Asker: q.Asker}
				} else if say == nil {
					return nil
				}
				return say(m)
			}
			c.answering(1, answer)
			c.answering(2, answer)
			ctx, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
			defer cancel()
			_, err := c.members[0].Create(ctx, "t", kv.Record{Signature: "me", TTL: 5 * time.Second})
			require.ErrorContains(t, err, want)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
	}
}

func TestAnErrorSaysWhichMembersAreNotReachedAndWhy(t *testing.T) {
	t.Parallel()
	authority := testenv.NewAuthority(t)
	addrs := []string{testenv.FreeAddr(t), testenv.FreeAddr(t), testenv.FreeAddr(t)}
	client, err := paxoskv.New(&paxoskv.Options{Peers: addrs, Cluster: "c", TLS: authority.Config("client")})
	require.NoError(t, err)
	defer client.Close()
	require.Eventually(t, func() bool { // each was tried
		for _, m := range client.Status().Members {
			if m.Trouble == nil || m.Trouble.Error() == "it has not called yet: does it run, with this member in its list?" {
				return false
			}
		}
		return true
	}, 20*time.Second, 10*time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	rec := kv.Record{Signature: "x", TTL: time.Second}
	says := func(err error) {
		t.Helper()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		for _, addr := range addrs {
			require.ErrorContains(t, err, addr+" is not connected: ")
		}
		require.ErrorContains(t, err, "connection refused")
	}
	begun := make(chan error, 1)
	go func() {
		_, err := client.Create(ctx, "s", rec)
		begun <- err
	}()
	_, err = client.Create(ctx, "s", rec) // one of them waits for the other
	says(err)
	says(<-begun)
	_, err = client.Get(ctx, "s") // it is too late
	says(err)
	_, err = client.Create(ctx, "s", rec)
	says(err)
	for _, err := range client.Watch(ctx, "s") {
		says(err)
	}
}
