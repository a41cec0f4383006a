package sqlkv_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	sqlkv "github.com/electkv/election/backends/sql"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

func replaced(s, old, with string) string { return strings.ReplaceAll(s, old, with) }

// TestNoTimeZoneMatters has clients whose sessions are in different zones, one at the
// edge of a change of clocks.
func TestNoTimeZoneMatters(t *testing.T) {
	onServers(t, func(t *testing.T, p *place) {
		zones := []string{"timezone=Pacific/Kiritimati", "timezone=America/St_Johns"}
		if p.dialect == sqlkv.MySQL {
			zones = []string{"time_zone=%27%2B13:00%27&loc=Local&parseTime=true", "time_zone=%27-11:30%27"}
		}
		east := sqlkv.New(p.open(t, p.asks(zones[0])), p.dialect, p.opts())
		west := sqlkv.New(p.open(t, p.asks(zones[1])), p.dialect, p.opts())
		for _, two := range [][]*sqlkv.Store{{east, west}, {west, east}} {
			name := named()
			start := time.Now()
			rec, err := two[0].Create(within(t, patience), name, mortal(time.Second))
			require.NoError(t, err)
			for {
				_, err := two[1].Create(within(t, patience), name, signed("the next"))
				if err == nil {
					break
				}
				require.ErrorIs(t, err, kv.ErrHeld)
				require.Less(t, time.Since(start), patience, "it outlives its TTL")
				time.Sleep(20 * time.Millisecond)
			}
			require.GreaterOrEqual(t, time.Since(start), rec.TTL-rec.TTL/500, "it ends before its TTL")
		}
	})
}

// TestALifeCountsFromTheStartOfACallThatWaited has a refresh wait for a lock: the life
// that it gives is not shorter for that.
func TestALifeCountsFromTheStartOfACallThatWaited(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		store := p.store(t)
		name := named()
		rec, err := store.Create(within(t, patience), name, mortal(2*time.Second))
		require.NoError(t, err)
		letGo := p.lock(t, name)
		start := time.Now()
		done := make(chan error, 1)
		go func() {
			_, err := store.Refresh(within(t, patience), name, rec)
			done <- err
		}()
		time.Sleep(500 * time.Millisecond)
		letGo()
		if err := <-done; errors.Is(err, kv.ErrStale) {
			t.Skip("the machine was asleep for the TTL")
		} else {
			require.NoError(t, err)
		}
		for {
			_, err := store.Get(within(t, patience), name)
			if errors.Is(err, kv.ErrVacant) {
				break
			}
			require.NoError(t, err)
			time.Sleep(10 * time.Millisecond)
		}
		require.GreaterOrEqual(t, time.Since(start), rec.TTL-rec.TTL/500)
	})
}

// withClock runs a test on servers whose wall clocks the test sets.
func withClock(t *testing.T, test func(*testing.T, *place, *testenv.Server)) {
	t.Parallel()
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		server := testenv.StartPostgresWithClock(t)
		test(t, inPostgres(t, server.Addr()), server)
	})
	t.Run("MariaDB", func(t *testing.T) {
		t.Parallel()
		server := testenv.StartMariaDBWithClock(t)
		test(t, inMariaDB(t, server.Addr()), server)
	})
}

// TestAJumpOfTheServersClockEndsARecordThatItJudges is the limit that the
// documentation tells of; and what it leads to is that nobody else has it.
func TestAJumpOfTheServersClockEndsARecordThatItJudges(t *testing.T) {
	withClock(t, func(t *testing.T, p *place, server *testenv.Server) {
		store := p.store(t)
		name, rec := held(t, store)
		server.JumpClock(2 * rec.TTL)
		_, err := store.Get(within(t, patience), name)
		require.ErrorIs(t, err, kv.ErrVacant)
		_, err = store.Refresh(within(t, patience), name, rec)
		require.ErrorIs(t, err, kv.ErrStale)
		next, err := store.Create(within(t, patience), name, signed("the next"))
		require.NoError(t, err, "two trust their records now")
		require.Greater(t, next.Token, rec.Token)

		server.JumpClock(-time.Hour)
		holds(t, store, name, next)
		require.NoError(t, store.Delete(within(t, patience), name, next))
		later, err := store.Create(within(t, patience), name, signed("later"))
		require.NoError(t, err)
		require.Greater(t, later.Token, next.Token, "tokens grow though the clock went back")
	})
}

// TestNoJumpOfTheServersClockMattersToObservers has the clock jump to and fro by
// hours. A live record stays, a dead one goes.
func TestNoJumpOfTheServersClockMattersToObservers(t *testing.T) {
	withClock(t, func(t *testing.T, p *place, server *testenv.Server) {
		owner, other := p.observed(t), p.observed(t)
		name := named()
		rec, err := owner.Create(within(t, patience), name, mortal(time.Minute))
		require.NoError(t, err)
		for _, jump := range []time.Duration{3 * time.Hour, -5 * time.Hour, 30 * 24 * time.Hour, -40 * 24 * time.Hour} {
			server.JumpClock(jump)
			holds(t, other, name, rec)
			_, err = other.Create(within(t, patience), name, signed("usurper"))
			require.ErrorIs(t, err, kv.ErrHeld, "after a jump of %v", jump)
			rec, err = owner.Refresh(within(t, patience), name, rec)
			require.NoError(t, err)
		}
		dead := named()
		start := time.Now()
		last, err := owner.Create(within(t, patience), dead, mortal(time.Second))
		require.NoError(t, err)
		server.JumpClock(-2 * time.Hour)
		for {
			next, err := other.Create(within(t, patience), dead, signed("the next"))
			if err == nil {
				require.Greater(t, next.Token, last.Token)
				break
			}
			require.ErrorIs(t, err, kv.ErrHeld)
			require.Less(t, time.Since(start), patience)
			time.Sleep(20 * time.Millisecond)
		}
		require.GreaterOrEqual(t, time.Since(start), last.TTL-last.TTL/500)
	})
}

// TestARefreshThatWasOvertakenShortensNoLife has the row say that the record lives for
// longer than this refresh would have it, as one that began later has left it. Where
// a statement knows the time at which it began, it may come second.
func TestARefreshThatWasOvertakenShortensNoLife(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		if p.dialect == sqlkv.PostgreSQL {
			return // its statements know what time it is
		}
		store := p.store(t)
		name, rec := held(t, store)
		later := map[sqlkv.Dialect]string{
			sqlkv.MySQL:  "UTC_TIMESTAMP(6) + INTERVAL 1 DAY",
			sqlkv.SQLite: "expires + 86400 * 1000000000",
		}
		p.do(t, "UPDATE election SET expires = "+later[p.dialect]+" WHERE name = ?", name)
		var before, after string
		expiry := func(into *string) {
			require.NoError(t, p.hand.QueryRowContext(within(t, patience), "SELECT expires FROM election WHERE name = ?", name).Scan(into))
		}
		expiry(&before)
		_, err := store.Refresh(within(t, patience), name, rec)
		require.NoError(t, err)
		expiry(&after)
		require.Equal(t, before, after)
	})
}
