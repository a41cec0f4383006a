//go:build unix

package consulkv_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/consul"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/internal/testenv/install"
	"github.com/electkv/election/kv"
)

// stand makes a candidate campaign, and sends its term.
func stand(t *testing.T, s kv.Store, name, value string) <-chan *election.Term {
	t.Helper()
	c, err := election.New(s, name, &election.Options{TTL: 15 * ttl, Value: value}) // nobody waits for its end
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	terms, done := make(chan *election.Term, 1), make(chan struct{})
	go func() {
		defer close(done)
		if term, err := c.Campaign(ctx); err == nil {
			terms <- term
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		select {
		case term := <-terms:
			_ = term.Resign(context.Background())
		default:
		}
	})
	return terms
}

// elected returns the term, once there is one.
func elected(t *testing.T, terms <-chan *election.Term) *election.Term {
	t.Helper()
	select {
	case term := <-terms:
		require.NoError(t, term.Err())
		return term
	case <-within(t, time.Minute).Done():
		require.FailNow(t, "nobody is elected")
		return nil
	}
}

func resign(t *testing.T, term *election.Term) {
	t.Helper()
	require.NoError(t, term.Resign(within(t, time.Minute)))
}

// An observer of an api.Lock knows two things: the value, while a session holds
// the key, and the flags, without which the key would be no lock to it.
func TestAnOldObserverReadsEachPlainValueAtTheKey(t *testing.T) {
	s, client, _ := openAs(t, plain)
	name := newName()
	term := elected(t, stand(t, s, name, "10.0.0.7:80"))
	for _, value := range []string{"10.0.0.7:80", "10.0.0.7:81", "", "\x00\xff", "10.0.0.7:82"} {
		require.NoError(t, term.Proclaim(within(t, time.Minute), value))
		got := pair(t, client, name)
		require.Equal(t, value, string(got.Value))
		require.NotEmpty(t, got.Session)
		require.Equal(t, uint64(api.LockFlagValue), got.Flags)
		tried, err := lockOf(t, client, name, 10*time.Millisecond).Lock(nil)
		require.NoError(t, err, "no conflict: it takes the key for a lock")
		require.Nil(t, tried)
	}
	resign(t, term)
	require.Empty(t, pair(t, client, name).Session)
}

// Old and new processes take turns, whatever the other has left at the keys.
func TestHoldersOfAnAPILockAndLeadersTakeTurns(t *testing.T) {
	inEachForm(t, func(t *testing.T, opts *consulkv.Options) {
		s, client, _ := openAs(t, opts)
		name := newName()
		for range 3 {
			terms := stand(t, s, name, "ours")
			term := elected(t, terms)
			locked := make(chan error, 1)
			lock := lockOf(t, client, name, 0)
			go func() {
				_, err := lock.Lock(nil)
				locked <- err
			}()
			require.NoError(t, term.Proclaim(within(t, time.Minute), "ours still"))
			require.NoError(t, term.Err())
			require.Empty(t, locked)
			resign(t, term)
			select {
			case err := <-locked:
				require.NoError(t, err)
			case <-within(t, time.Minute).Done():
				require.FailNow(t, "the api.Lock does not get the key")
			}
			require.ErrorIs(t, term.Err(), election.ErrResigned)

			next := stand(t, s, name, "next")
			holder, err := election.Current(t.Context(), s, name)
			require.NoError(t, err)
			require.Equal(t, "host-7", holder.Value)
			taken(t, s, name, "host-7")
			require.Empty(t, next)
			require.NoError(t, lock.Unlock())
			resign(t, elected(t, next))
		}
	})
}

// What our record left behind does not make the old holder's key ours.
func TestAnAPILockAfterOurEndIsNeverOurs(t *testing.T) {
	inEachForm(t, func(t *testing.T, opts *consulkv.Options) {
		s, client, _ := openAs(t, opts)
		for what, leave := range map[string]func(name string, rec kv.Record){
			"expired":       func(_ string, rec kv.Record) { end(t, client, rec.Lease) },
			"given up":      func(name string, rec kv.Record) { require.NoError(t, s.Delete(t.Context(), name, rec)) },
			"deleted alive": func(name string, _ kv.Record) { operator{client}.remove(t, name) },
		} {
			t.Run(what, func(t *testing.T) {
				name := newName()
				rec := create(t, s, name, signed("host-7", time.Minute))
				leave(name, rec)
				_, err := s.Get(t.Context(), name)
				require.ErrorIs(t, err, kv.ErrVacant)
				lock := lockOf(t, client, name, 0)
				_, err = lock.Lock(nil)
				require.NoError(t, err)
				taken(t, s, name, "host-7")
				lost(t, s, name, rec)
				require.NoError(t, lock.Unlock())
				require.Equal(t, "host-7", string(pair(t, client, name).Value), "its value stays, and nobody leads")
				lost(t, s, name, rec)
				succeed(t, s, name)
				require.NoError(t, lock.Destroy())
				succeed(t, s, name)
			})
		}
	})
}

// The lock-delay is the old holder's. Until it has passed the key is open, and
// refused to everybody.
func TestACandidateGetsInAfterTheLockDelayOfAHolderThatCrashed(t *testing.T) {
	t.Parallel() // it mostly waits
	const delay = 3 * time.Second
	inEachForm(t, func(t *testing.T, opts *consulkv.Options) {
		s, client, _ := openAs(t, opts)
		name := newName()
		session, _, err := client.Session().CreateNoChecks(&api.SessionEntry{TTL: "4s", LockDelay: delay}, nil)
		require.NoError(t, err)
		lock, err := client.LockOpts(&api.LockOptions{Key: name, Value: []byte("host-7"), Session: session})
		require.NoError(t, err)
		_, err = lock.Lock(nil) // and renews its session never again
		require.NoError(t, err)
		terms := stand(t, s, name, "ours")
		var alive time.Time // the session ended later
		eventually(t, func() error {
			sent := time.Now()
			if pair(t, client, name).Session == session {
				alive = sent
				return kv.ErrHeld
			}
			return nil
		})
		term := elected(t, terms)
		require.GreaterOrEqual(t, time.Since(alive), delay)
		resign(t, term)
	})
}

// Both keys have a lock-delay when our session ends. An operator who deletes the
// key meanwhile leaves one at the companion alone.
func TestTheLockDelayOfACompanionIsToldAndPasses(t *testing.T) {
	t.Parallel() // it mostly waits
	const delay = 3 * time.Second
	s, client, _ := openAs(t, &consulkv.Options{MinTTL: ttl, Plain: true, LockDelay: delay})
	for _, deleted := range []bool{false, true} {
		name := newName()
		rec := create(t, s, name, signed("v", time.Minute))
		if deleted {
			operator{client}.remove(t, name)
		}
		ended := time.Now()
		end(t, client, rec.Lease)
		rec, err := s.Create(t.Context(), name, signed("v", time.Minute))
		if err == nil && time.Since(ended) >= delay {
			require.NoError(t, s.Delete(t.Context(), name, rec))
			continue // this machine was too busy to be refused
		}
		require.ErrorIs(t, err, kv.ErrHeld)
		require.ErrorContains(t, err, "lock-delay")
		require.Zero(t, sessions(t, client, name))
		eventually(t, func() error {
			rec, err := s.Create(t.Context(), name, signed("v", time.Minute))
			if err == nil {
				err = s.Delete(t.Context(), name, rec)
			}
			return err
		})
	}
}

// A shell is "consul lock" with a child that lasts until its input ends.
type shell struct {
	cmd   *exec.Cmd
	input io.Closer
	log   bytes.Buffer
}

func consulLock(t *testing.T, args ...string) *shell {
	t.Helper()
	path, err := install.Consul.Path(t.Context(), os.Stderr)
	require.NoError(t, err)
	args = append([]string{"lock", "-http-addr=" + testenv.Consul(t), "-pass-stdin"}, args...)
	s := &shell{cmd: exec.CommandContext(t.Context(), path, append(args, "cat")...)}
	s.cmd.WaitDelay = 5 * time.Second
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	s.input, err = s.cmd.StdinPipe()
	require.NoError(t, err)
	testenv.Guard(t, s.cmd)
	require.NoError(t, s.cmd.Start())
	return s
}

// end lets the child end, and waits for the command.
func (s *shell) end(t *testing.T) {
	t.Helper()
	require.NoError(t, s.input.Close())
	require.NoError(t, s.cmd.Wait(), s.log.String())
}

// holder waits until a session that is not ours holds the key, and returns it.
func holder(t *testing.T, client *api.Client, key, ours string) string {
	t.Helper()
	session := ""
	eventually(t, func() error {
		got, _, err := client.KV().Get(key, &api.QueryOptions{RequireConsistent: true})
		if err == nil && (got == nil || got.Session == "" || got.Session == ours) {
			err = kv.ErrVacant
		}
		if err == nil {
			session = got.Session
		}
		return err
	})
	return session
}

// "consul lock jobs" has the key "jobs/.lock".
func TestConsulLockAndLeadersTakeTurns(t *testing.T) {
	inEachForm(t, func(t *testing.T, opts *consulkv.Options) {
		prefix := newName()
		s, client, _ := openAs(t, &consulkv.Options{MinTTL: ttl, Plain: opts.Plain, Prefix: prefix + "/"})
		const name = ".lock"
		key := prefix + "/.lock"

		theirs := consulLock(t, prefix)
		session := holder(t, client, key, "")
		info, _, err := client.Session().Info(session, nil)
		require.NoError(t, err)
		require.Contains(t, info.Name, "Consul lock for")
		require.Equal(t, session, taken(t, s, name, "").Lease)
		terms := stand(t, s, name, "ours")
		require.Equal(t, session, pair(t, client, key).Session)
		require.Empty(t, terms)
		theirs.end(t)
		require.NotContains(t, theirs.log.String(), "rror")

		term := elected(t, terms)
		ours := term.Record().Lease
		late := consulLock(t, "-timeout=1s", prefix)
		require.NoError(t, late.input.Close(), "if it gets the key all the same, its child ends")
		require.Error(t, late.cmd.Wait(), late.log.String())
		require.Contains(t, late.log.String(), "timeout during lock acquisition", "it takes the key for a lock")
		waiting := consulLock(t, "-verbose", prefix)
		require.NoError(t, term.Proclaim(within(t, time.Minute), "ours still"))
		require.Equal(t, ours, pair(t, client, key).Session)
		resign(t, term)
		holder(t, client, key, ours)
		taken(t, s, name, "")
		waiting.end(t)
		absent(t, client, key)
		succeed(t, s, name)
	})
}
