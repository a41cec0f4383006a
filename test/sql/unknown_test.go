package sqlkv_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	sqlkv "github.com/electkv/election/backends/sql"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// undecided requires an error that says nothing of what became of a write.
func undecided(t testing.TB, err error, op string) {
	t.Helper()
	require.Error(t, err, op)
	for _, decided := range []error{kv.ErrVacant, kv.ErrHeld, kv.ErrStale, kv.ErrInvalid} {
		require.NotErrorIs(t, err, decided, op)
	}
}

// behindProxy returns the place as it is reached through a proxy.
func (p *place) behindProxy(t testing.TB, addr string) (*place, *testenv.Proxy) {
	proxy := testenv.NewProxy(t, addr)
	far := *p
	far.source = replaced(p.source, addr, proxy.Addr())
	return &far, proxy
}

// TestAWriteWhoseReplyIsLostIsFoundOut has the server carry out each write, and its
// reply be lost. The caller knows nothing, and finds it in the safe.
func TestAWriteWhoseReplyIsLostIsFoundOut(t *testing.T) {
	onServers(t, func(t *testing.T, p *place) {
		addr := map[sqlkv.Dialect]func(testing.TB) string{sqlkv.PostgreSQL: testenv.Postgres, sqlkv.MySQL: testenv.MariaDB}[p.dialect](t)
		far, proxy := p.behindProxy(t, addr)
		if p.dialect == sqlkv.MySQL {
			far.source += p.asks("interpolateParams=true") // a statement is one request
		}
		store, near := far.store(t), p.store(t)
		name := named()
		rec := signed("v")
		_, err := store.Get(within(t, patience), name) // a connection is there
		require.NoError(t, ignore(err, kv.ErrVacant))

		lose := func(op string, write func(context.Context) error, done func() bool) {
			proxy.DropReplies()
			ctx, cancel := context.WithCancel(context.Background())
			failed := make(chan error, 1)
			go func() { failed <- write(ctx) }()
			require.Eventually(t, done, patience, 10*time.Millisecond, op)
			cancel()
			err := <-failed
			require.ErrorIs(t, err, context.Canceled, op)
			undecided(t, err, op)
			proxy.Heal()
			_, err = store.Get(within(t, patience), named()) // another connection is there
			require.ErrorIs(t, err, kv.ErrVacant)
		}
		var now kv.Record
		seen := func(is func(kv.Record, error) bool) func() bool {
			return func() bool {
				now, err = near.Get(within(t, patience), name)
				return is(now, err)
			}
		}
		// The first statement of a create finds no row; the reply to that is lost.
		_, err = near.Create(within(t, patience), name, signed("before"))
		require.NoError(t, err)
		before, err := near.Get(within(t, patience), name)
		require.NoError(t, err)
		require.NoError(t, near.Delete(within(t, patience), name, before))

		lose("create", func(ctx context.Context) error { _, err := store.Create(ctx, name, rec); return err },
			seen(func(got kv.Record, err error) bool { return err == nil && got.Signature == rec.Signature }))
		mine, err := store.Refresh(within(t, patience), name, now)
		require.NoError(t, err, "what was found can be adopted")
		next := mine
		next.Value = "published"
		lose("publish", func(ctx context.Context) error { _, err := store.Swap(ctx, name, mine, next); return err },
			seen(func(got kv.Record, err error) bool { return err == nil && got.Value == "published" }))
		heir := signed("the heir")
		last := now
		lose("hand over", func(ctx context.Context) error { _, err := store.Swap(ctx, name, last, heir); return err },
			seen(func(got kv.Record, err error) bool { return err == nil && got.Signature == heir.Signature }))
		last = now
		lose("delete", func(ctx context.Context) error { return store.Delete(ctx, name, last) },
			seen(func(_ kv.Record, err error) bool { return errors.Is(err, kv.ErrVacant) }))
	})
}

// TestAConnectionThatIsEndedInTheMiddleOfAStatementTellsNothing has the server end
// the connection of a statement that waits for a lock.
func TestAConnectionThatIsEndedInTheMiddleOfAStatementTellsNothing(t *testing.T) {
	onServers(t, func(t *testing.T, p *place) {
		store := p.store(t)
		name, rec := held(t, store)
		letGo := p.lock(t, name)
		failed := make(chan error, 1)
		go func() {
			next := rec
			next.Value = "changed"
			_, err := store.Swap(within(t, patience), name, rec, next)
			failed <- err
		}()
		var err error
		for err == nil {
			p.endWaiting(t)
			select {
			case err = <-failed:
			case <-time.After(20 * time.Millisecond):
			}
		}
		undecided(t, err, "publish")
		letGo()
		holds(t, store, name, rec)
		got, err := store.Refresh(within(t, patience), name, rec)
		require.NoError(t, err, "the next call has another connection")
		require.Equal(t, rec, got)
	})
}

// endWaiting ends the connections whose statements wait for a lock.
func (p *place) endWaiting(t testing.TB) {
	t.Helper()
	if p.dialect == sqlkv.PostgreSQL {
		p.do(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
		return
	}
	rows, err := p.hand.QueryContext(within(t, patience), "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE '%UPDATE%election%' AND id <> CONNECTION_ID()")
	require.NoError(t, err)
	var ids []int64
	for rows.Next() {
		var id int64
		require.NoError(t, rows.Scan(&id))
		ids = append(ids, id)
	}
	require.NoError(t, rows.Close())
	for _, id := range ids {
		_, _ = p.hand.ExecContext(within(t, patience), "KILL ?", id) // it may have ended
	}
}

// TestAServerThatStopsIsAnErrorAndComesBack has the server killed and started.
func TestAServerThatStopsIsAnErrorAndComesBack(t *testing.T) {
	t.Parallel()
	server := testenv.StartPostgres(t)
	p := inPostgres(t, server.Addr())
	store := p.store(t)
	name, rec := held(t, store)
	server.Kill()
	_, err := store.Refresh(within(t, 2*time.Second), name, rec)
	undecided(t, err, "refresh")
	server.Restart()
	require.Eventually(t, func() bool {
		got, err := store.Refresh(within(t, patience), name, rec)
		return err == nil && got == rec
	}, patience, 50*time.Millisecond, "a record outlives a restart")
}

// ignore returns err unless it is another.
func ignore(err, other error) error {
	if errors.Is(err, other) {
		return nil
	}
	return err
}
