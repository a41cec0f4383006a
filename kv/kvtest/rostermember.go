package kvtest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

func aMemberFadesFromItsRoster(r *rota) {
	start := time.Now()
	one := r.enters(r.s, r.mortal("a"))
	other := r.enters(r.open(), r.signed("b"))
	deadline := start.Add(r.lifetime(one.Record.TTL).Max + patience)
	for {
		all, _ := r.list()
		now := time.Now()
		require.Contains(r, all, other)
		if len(all) == 1 {
			require.False(r, now.Before(earliest(start, one.Record.TTL)), "it faded after %v, before its TTL of %v", now.Sub(start), one.Record.TTL)
			return
		}
		require.True(r, now.Before(deadline), "it has not faded after %v", now.Sub(start))
		time.Sleep(r.ttl / 20)
	}
}

func aMemberThatIsRefreshedStays(r *rota) {
	r.patiently(func() bool { return r.rota().staysWhileItIsRefreshed() })
}

// staysWhileItIsRefreshed reports whether the member was refreshed in time.
func (r *rota) staysWhileItIsRefreshed() bool {
	last := time.Now()
	one := r.enters(r.s, r.mortal("a"))
	for until := last.Add(r.lifetime(one.Record.TTL).Max + r.ttl); time.Now().Before(until); time.Sleep(r.ttl / 4) {
		began := time.Now()
		rec, err := r.s.Refresh(r.ctx, one.Name, one.Record)
		all, _ := r.list()
		if time.Since(last) >= r.ttl {
			return false
		}
		last = began
		require.NoError(r, err)
		require.Equal(r, one.Record.Token, rec.Token)
		require.Len(r, all, 1)
		require.True(r, all[0].Record.Owns(one.Record))
	}
	return true
}

func membersThatShareALease(r *rota) {
	batch, ok := r.s.(kv.Batch)
	if !ok {
		r.Skip("the store refreshes one record at a time")
	}
	r.patiently(func() bool { return r.rota().staysByASharedLease(batch) })
}

// staysByASharedLease reports whether the members were refreshed in time.
func (r *rota) staysByASharedLease(batch kv.Batch) bool {
	shared := func(value string) kv.Record {
		rec := r.mortal(value)
		rec.Shared = true
		return rec
	}
	last := time.Now()
	lead := r.name()
	all := mayShareAll([]kv.Held{
		{Name: lead, Record: r.create(r.s, lead, shared("leads"))}, r.enters(r.s, shared("a")), r.enters(r.s, shared("b")),
	})
	if time.Since(last) >= r.ttl {
		return false
	}
	one, two := all[1], all[2]
	require.Equal(r, one.Record.Lease, two.Record.Lease, "the leases of two members' records of one process")
	refresh := func() (told []Verdict, members []kv.Held, inTime bool) {
		began := time.Now()
		told = RefreshAll(r, r.ctx, batch, all)
		members, _ = r.list()
		inTime = time.Since(last) < r.ttl
		last = began
		return told, members, inTime
	}
	for until := last.Add(r.lifetime(one.Record.TTL).Max + r.ttl); time.Now().Before(until); time.Sleep(r.ttl / 4) {
		told, members, inTime := refresh()
		if !inTime {
			return false
		}
		for i, v := range told {
			require.NoError(r, v.Err)
			require.True(r, v.Record.Owns(all[i].Record))
		}
		require.Len(r, members, 2)
	}
	err := r.s.Delete(r.ctx, one.Name, one.Record)
	if time.Since(last) >= r.ttl {
		return false
	}
	require.NoError(r, err)
	told, members, inTime := refresh()
	if !inTime {
		return false
	}
	require.NoError(r, told[0].Err)
	require.ErrorIs(r, told[1].Err, kv.ErrStale)
	require.NoError(r, told[2].Err)
	require.Len(r, members, 1)
	require.True(r, members[0].Record.Owns(two.Record))
	return true
}
