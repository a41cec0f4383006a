package rediskv

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

const patience = 1500 * time.Millisecond

// careful is a desk with a quarantine.
func careful(t *testing.T, server *testenv.Server) *desk {
	t.Helper()
	return newDesk(t, &Options{Quarantine: patience}, server.Addr())
}

// closed returns how long a put is refused, from the first look on.
func (d *desk) closed(name string, old kv.Record) (time.Duration, kv.Record) {
	d.Helper()
	begun := time.Now()
	_, _ = d.reg.Get(d.ctx, name)
	for ; ; time.Sleep(20 * time.Millisecond) {
		rec, err := d.reg.Put(d.ctx, name, old, d.signed())
		if err == nil {
			return time.Since(begun), rec
		}
		require.ErrorIs(d, err, kv.ErrHeld)
		require.ErrorContains(d, err, "quarantine")
		require.Less(d, time.Since(begun), time.Minute)
	}
}

// The clock that the quarantine is measured by is not the server's.
func TestAServerThatForgotACellGivesItToNobodyUntilTheQuarantineIsOver(t *testing.T) {
	t.Parallel() // it mostly waits
	server := testenv.StartRedisWithClock(t, "--appendonly", "no")
	d := careful(t, server)
	name := d.name()
	took, rec := d.closed(name, kv.Record{})
	require.GreaterOrEqual(t, took, patience, "nobody knows what the server knew before")
	require.NoError(t, d.reg.Remove(d.ctx, name, rec))
	rec = d.put(name, kv.Record{}, d.signed())
	d.put(name, rec, d.signed())

	for _, jump := range []time.Duration{0, time.Hour, -2 * time.Hour} {
		server.Restart()
		server.JumpClock(jump)
		took, _ := d.closed(name, kv.Record{})
		require.GreaterOrEqual(t, took, patience, "after a jump of %v", jump)
	}
}

// One candidate's patience is enough: it writes down that it had it.
func TestOneWhoHasWaitedOpensTheSafesToAll(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t)
	d := careful(t, server)
	name := d.name()
	_, rec := d.closed(name, kv.Record{})
	newcomer := careful(t, server)
	rec = newcomer.put(name, rec, newcomer.signed())
	require.NoError(t, d.reg.Remove(d.ctx, name, rec))
	careful(t, server).put(name, kv.Record{}, d.signed())
	require.Empty(t, d.reg.strangers.met, "who is known is no stranger")

	// Also a look is enough, while somebody leads.
	server.Restart()
	rec = d.get(name)
	rec = d.put(name, rec, rec)
	time.Sleep(patience)
	require.Equal(t, rec, d.get(name))
	careful(t, server).put(name, rec, d.signed())
}

// The record is there, as it was some refreshes ago: who saw it then takes it for
// unchanged, and dead.
func TestAServerThatForgotARefreshLetsNobodyTakeTheCellOver(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t)
	d := careful(t, server)
	name := d.name()
	_, old := d.closed(name, kv.Record{})
	text := d.other.Get(d.ctx, name).Val()
	d.put(name, old, old)
	server.Restart()
	require.NoError(t, d.other.Set(d.ctx, name, text, 0).Err())
	_, err := d.reg.Put(d.ctx, name, old, d.signed())
	require.ErrorIs(t, err, kv.ErrHeld)
	rec := d.put(name, old, old) // the owner itself goes on; a look of it may end the newcomer's wait
	newcomer := careful(t, server)
	took, _ := newcomer.closed(name, rec)
	require.GreaterOrEqual(t, took, patience)
}

func TestNobodysWordButOnesOwnWaitingCounts(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t)
	d := newDesk(t, &Options{Quarantine: time.Hour}, server.Addr())
	name := d.name()
	key := "{" + name + "}:election-server"
	_, err := d.reg.Get(d.ctx, name)
	require.ErrorIs(t, err, kv.ErrVacant)
	id := d.reg.strangers.met[name].id
	require.Len(t, id, 80)
	for _, mark := range []string{"", "rubbish", id, id + " 1", id + " 00", strings.Repeat("0", 80) + " 0"} {
		require.NoError(t, d.other.Set(d.ctx, key, mark, 0).Err())
		_, err := d.reg.Put(d.ctx, name, kv.Record{}, d.signed())
		require.ErrorIs(t, err, kv.ErrHeld, mark)
	}
	require.NoError(t, d.other.Del(d.ctx, key).Err())
	require.NoError(t, d.other.HSet(d.ctx, key, id, "0").Err())
	_, err = d.reg.Put(d.ctx, name, kv.Record{}, d.signed())
	require.ErrorIs(t, err, kv.ErrHeld)
	require.Zero(t, d.other.Exists(d.ctx, name).Val())
	require.NoError(t, d.other.Set(d.ctx, key, id+" 0", 0).Err())
	d.put(name, kv.Record{}, d.signed())
}

func TestAnotherServerIsAnotherStranger(t *testing.T) {
	s := newStrangers(time.Millisecond)
	require.Empty(t, s.waited("k"))
	s.meet("k", "one")
	require.Eventually(t, func() bool { return s.waited("k") == "one" }, slack, time.Millisecond)
	require.Empty(t, s.waited("other"))
	s.patience = time.Hour
	s.meet("k", "one")
	require.Empty(t, s.waited("k"))
	s.patience = 0
	s.meet("k", "two")
	require.Equal(t, "two", s.waited("k"))
	s.meet("k", "")
	require.Empty(t, s.met)
}
