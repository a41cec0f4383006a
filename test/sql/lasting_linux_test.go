package sqlkv_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	sqlkv "github.com/electkv/election/backends/sql"
	"github.com/electkv/election/kv"
)

// lastingFor returns a draft of a lasting record.
func lastingFor(d time.Duration) kv.Record {
	rec := mortal(d)
	rec.Lasting = true
	return rec
}

// anotherBoot has the safe's row say that another boot wrote it.
func (p *place) anotherBoot(t testing.TB, name string) {
	t.Helper()
	p.do(t, "UPDATE election SET boot = 'another', expires = 1 WHERE name = ?", name)
}

// until has the safe's lasting row say that it ends then by the wall clock.
func (p *place) until(t testing.TB, name string, end time.Time) {
	t.Helper()
	p.do(t, "UPDATE election SET timens = ' until ' || ? WHERE name = ?", end.UnixMicro(), name)
}

// also has the safe's lasting row say the same, and leaves its clock as it is.
func (p *place) also(t testing.TB, name string, end time.Time) {
	t.Helper()
	p.do(t, "UPDATE election SET timens = replace(timens, substr(timens, instr(timens, ' until ')), ' until ' || ?) WHERE name = ?", end.UnixMicro(), name)
}

// vacated returns how long after the start the safe became vacant to the store.
func vacated(t testing.TB, store *sqlkv.Store, name string, start time.Time) time.Duration {
	t.Helper()
	for _, err := range store.Watch(within(t, patience), name) {
		if err != nil {
			require.ErrorIs(t, err, kv.ErrVacant)
			break
		}
	}
	return time.Since(start)
}

// TestALastingRecordIsOverForProgramsThatNeverSawIt has one-shot programs ask whose clock
// is not the writer's, as cron starts them after a reboot.
func TestALastingRecordIsOverForProgramsThatNeverSawIt(t *testing.T) {
	strangers(t, func(t *testing.T, p *place, one, other frame) {
		for try := 1; !p.isOverForStrangers(t, one, other); try++ {
			require.Less(t, try, 5, "this machine is too busy to ask while the record still lives")
			p = inSQLite(t)
		}
	})
}

// isOverForStrangers reports whether somebody asked while the record still lived: otherwise that
// one leads.
func (p *place) isOverForStrangers(t *testing.T, one, other frame) bool {
	t.Helper()
	began := time.Now()
	writer := p.play(t, one, "last")
	token := writer.elected(t)
	created := time.Now()
	writer.kill()
	line := p.play(t, other, "try").line(t)
	if time.Since(began) >= onceTTL {
		return false
	}
	require.Contains(t, line, "refused:", "the record still lives")
	require.NotContains(t, line, "another boot", "nobody has to watch it")
	time.Sleep(onceTTL + onceTTL/100 - time.Since(created)) // clocks are set by little
	stranger := container(t, "bbbbbbbb-0000-4000-8000-000000000000")
	require.Greater(t, p.play(t, stranger, "try").elected(t), token)
	return true
}

func TestALastingRecordByAnotherClockLivesByTheWallClock(t *testing.T) {
	t.Parallel()
	const life = 12 * time.Second
	p := inSQLite(t)
	writer := p.store(t)
	for left, lives := range map[time.Duration]bool{
		life:      true,
		-life:     false,
		time.Hour: false, // the wall clock was set back
	} {
		name := "left " + left.String()
		began := time.Now()
		rec, err := writer.Create(within(t, patience), name, lastingFor(life))
		require.NoError(t, err)
		p.anotherBoot(t, name)
		other := p.store(t)
		p.until(t, name, time.Now().Add(left))
		if lives {
			holds(t, other, name, rec)
			require.GreaterOrEqual(t, vacated(t, other, name, began), life-life/500)
		}
		_, err = other.Get(within(t, patience), name)
		require.ErrorIs(t, err, kv.ErrVacant, name)
		_, err = writer.Refresh(within(t, patience), name, rec)
		require.ErrorIs(t, err, kv.ErrStale, name)
		next, err := other.Create(within(t, patience), name, signed("the next"))
		require.NoError(t, err, name)
		require.Greater(t, next.Token, rec.Token)
	}
}

// TestWhoSharesTheClockJudgesALastingRecordByIt has the wall clock say that the record is
// over, and that it would live for longer than its TTL.
func TestWhoSharesTheClockJudgesALastingRecordByIt(t *testing.T) {
	t.Parallel()
	p := inSQLite(t)
	store := p.store(t)
	for _, jump := range []time.Duration{-time.Hour, time.Hour} {
		name := named()
		rec, err := store.Create(within(t, patience), name, lastingFor(time.Minute))
		require.NoError(t, err)
		p.also(t, name, time.Now().Add(jump))
		holds(t, store, name, rec)
		_, err = store.Create(within(t, patience), name, signed("the next"))
		require.ErrorIs(t, err, kv.ErrHeld)
	}
}

// TestARefreshOfALastingRecordCountsByTheWallClockToo has a hold whose create had no
// clear answer: its TTL counts from the refresh, and is not shortened by one that was
// overtaken.
func TestARefreshOfALastingRecordCountsByTheWallClockToo(t *testing.T) {
	t.Parallel()
	const life = 12 * time.Second
	p := inSQLite(t)
	store := p.store(t)
	name := named()
	rec, err := store.Create(within(t, patience), name, lastingFor(life))
	require.NoError(t, err)
	p.also(t, name, time.Now().Add(life/10)) // as if that had been long ago
	began := time.Now()
	_, err = store.Refresh(within(t, patience), name, rec)
	require.NoError(t, err)
	p.anotherBoot(t, name)
	require.GreaterOrEqual(t, vacated(t, store, name, began), life-life/500)

	name = named()
	rec, err = store.Create(within(t, patience), name, lastingFor(time.Minute))
	require.NoError(t, err)
	later := time.Now().Add(2 * time.Minute)
	p.also(t, name, later)
	_, err = store.Refresh(within(t, patience), name, rec)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(p.timens(t, name), fmt.Sprint(" until ", later.UnixMicro())), "it was shortened")
}

// TestWhatFollowsALastingRecordDoesNotLast has each way to end one leave nothing behind by
// which a wall clock could end the next.
func TestWhatFollowsALastingRecordDoesNotLast(t *testing.T) {
	t.Parallel()
	p := inSQLite(t)
	store := p.store(t)
	for what, follow := range map[string]func(name string, rec kv.Record) error{
		"a hand-over": func(name string, rec kv.Record) error {
			_, err := store.Swap(within(t, patience), name, rec, signed("heir"))
			return err
		},
		"a create after a delete": func(name string, rec kv.Record) error {
			if err := store.Delete(within(t, patience), name, rec); err != nil {
				return err
			}
			_, err := store.Create(within(t, patience), name, signed("next"))
			return err
		},
		"a create after the end": func(name string, _ kv.Record) error {
			p.anotherBoot(t, name)
			p.until(t, name, time.Now().Add(-time.Second))
			_, err := store.Create(within(t, patience), name, signed("next"))
			return err
		},
	} {
		name := named()
		rec, err := store.Create(within(t, patience), name, lastingFor(time.Minute))
		require.NoError(t, err)
		require.Contains(t, p.timens(t, name), " until ")
		require.NoError(t, follow(name, rec), what)
		require.NotContains(t, p.timens(t, name), "until", what)
	}
}

// timens returns what the safe's row says of the clock.
func (p *place) timens(t testing.TB, name string) (text string) {
	t.Helper()
	require.NoError(t, p.hand.QueryRowContext(within(t, patience), "SELECT timens FROM election WHERE name = ?", name).Scan(&text))
	return text
}

// TestALastingRecordThatOutlivesAnotherLasts has the row be one that was observed.
func TestALastingRecordThatOutlivesAnotherLasts(t *testing.T) {
	t.Parallel()
	p := inSQLite(t)
	store := p.store(t)
	name := named()
	old, err := store.Create(within(t, patience), name, mortal(500*time.Millisecond))
	require.NoError(t, err)
	p.anotherBoot(t, name)
	_, err = store.Create(within(t, patience), name, lastingFor(time.Minute))
	require.ErrorIs(t, err, kv.ErrHeld)
	time.Sleep(old.TTL + old.TTL/10)
	_, err = store.Create(within(t, patience), name, lastingFor(time.Minute))
	require.NoError(t, err)
	require.Contains(t, p.timens(t, name), " until ")
}
