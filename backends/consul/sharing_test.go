//go:build unix

package consulkv_test

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/consul"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

// inTime tries something that takes refreshes in time, with longer TTLs where the machine was too
// busy for that.
func inTime(t *testing.T, try func(ttl time.Duration) bool) {
	t.Helper()
	for ttl := time.Second; !try(ttl); ttl *= 2 {
		require.Less(t, ttl, 20*time.Second, "this machine is too busy to refresh anything before it fades")
	}
}

// together creates records that share a session. It reports whether they do: where a session is
// granted too late for the first of them, that record has one of its own.
func together(t *testing.T, s *consulkv.Store, n int, ttl time.Duration) (records []kv.Held, share bool) {
	t.Helper()
	records = crowdOf(t, s, n, ttl)
	return records, !slices.ContainsFunc(records, func(r kv.Held) bool { return r.Record.Lease != records[0].Record.Lease })
}

// goesOn refreshes records until done, and requires that they live. It reports whether that was in
// time.
func goesOn(t *testing.T, s *consulkv.Store, records []kv.Held, done func() bool) bool {
	t.Helper()
	ttl := records[0].Record.TTL
	last, first := time.Now(), true
	for deadline := last.Add(30 * ttl); !done(); time.Sleep(ttl / 10) {
		require.True(t, time.Now().Before(deadline), "it takes too long")
		began := time.Now()
		told := kvtest.RefreshAll(t, t.Context(), s, records)
		lost := slices.ContainsFunc(told, func(v kvtest.Verdict) bool { return v.Err != nil })
		// Nobody knows here for how long the records were not refreshed before the first time.
		if time.Since(last) > ttl*9/10 || first && lost {
			return false
		}
		last, first = began, false
		held(t, told)
	}
	return time.Since(last) <= ttl*9/10
}

// after returns whether it is later than that.
func after(d time.Duration) func() bool {
	end := time.Now().Add(d)
	return func() bool { return time.Now().After(end) }
}

// vacant reports whether a safe is vacant.
func vacant(t *testing.T, s kv.Store, name string) bool {
	t.Helper()
	_, err := s.Get(t.Context(), name)
	if !errors.Is(err, kv.ErrVacant) {
		require.NoError(t, err)
	}
	return err != nil
}

func TestLeadersRecordsShareASession(t *testing.T) {
	s, client, requests := openAs(t, options)
	records := crowdOf(t, s, 5, time.Minute)
	for _, r := range records {
		require.Equal(t, records[0].Record.Lease, r.Record.Lease)
	}
	requests.take()
	name, one := newName(), signed("one more", time.Minute)
	one.Shared = true
	create(t, s, name, one)
	require.Equal(t, map[string]int{"kv": 1, "session/renew/": 1, "txn": 1}, requests.take(), "it is renewed for each")
	info, _, err := client.Session().Info(records[0].Record.Lease, nil)
	require.NoError(t, err)
	require.Equal(t, "elections of one process", info.Name)
	longer := signed("another TTL", 2*time.Minute)
	longer.Shared = true
	require.NotEqual(t, records[0].Record.Lease, create(t, s, newName(), longer).Lease)
	require.NotEqual(t, records[0].Record.Lease, create(t, s, newName(), signed("alone", time.Minute)).Lease)
}

// A guard knows a term by its session.
func TestASessionLocksAKeyForOneTermOnly(t *testing.T) {
	s, client, _ := openAs(t, options)
	name := newName()
	seen := make(map[string]bool)
	var first *api.KVTxnOp
	for i := range 4 {
		rec := signed("v", time.Minute)
		rec.Shared = true
		rec = create(t, s, name, rec)
		require.False(t, seen[rec.Lease], "term %d", i)
		seen[rec.Lease] = true
		if first == nil {
			first = s.Guard(name, rec)
		}
		done, _, _, err := client.KV().Txn(api.KVTxnOps{first}, nil)
		require.NoError(t, err)
		require.Equal(t, i == 0, done, "term %d", i)
		require.NoError(t, s.Delete(t.Context(), name, rec))
	}
}

func TestACreateThatIsRefusedDestroysNoSharedSession(t *testing.T) {
	s, client, requests := openAs(t, options)
	records := crowdOf(t, s, 2, time.Minute)
	name := newName()
	requests.beforeTxn(func(*http.Request) {
		create(t, consulkv.New(client, options), name, signed("first", time.Minute))
	})
	rec := signed("second", time.Minute)
	rec.Shared = true
	_, err := s.Create(t.Context(), name, rec)
	require.ErrorIs(t, err, kv.ErrHeld)
	held(t, kvtest.RefreshAll(t, t.Context(), s, records))
}

// Its neighbours would keep its record alive for ever.
func TestACreateThatComesWhenNobodyWaitsForItFadesBesideOthers(t *testing.T) {
	t.Parallel()
	inEachForm(t, func(t *testing.T, opts *consulkv.Options) {
		inTime(t, func(ttl time.Duration) bool { return aLateCreateFades(t, opts, ttl) })
	})
}

func aLateCreateFades(t *testing.T, opts *consulkv.Options, ttl time.Duration) bool {
	s, client, requests := openAs(t, opts)
	others, share := together(t, s, 2, ttl)
	if !share {
		return false
	}
	name := newName()
	late := make(chan *http.Request, 1)
	requests.refuse(func(req *http.Request) error {
		if req.URL.Path == "/v1/txn" && !onlyReads(req) {
			late <- req
			return errRefused
		}
		return nil
	})
	rec := signed("late", ttl)
	rec.Shared = true
	_, err := s.Create(t.Context(), name, rec)
	unknown(t, err)
	requests.refuse(nil)
	req := (<-late).Clone(t.Context())
	req.Body, err = req.GetBody()
	require.NoError(t, err)
	var status int
	var found *api.KVPair
	due := after(5 * ttl)
	if !goesOn(t, s, others, func() bool {
		if !due() {
			return false
		}
		resp, err := requests.next.RoundTrip(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		status = resp.StatusCode
		found, _, err = client.KV().Get(name, &api.QueryOptions{RequireConsistent: true})
		require.NoError(t, err)
		return true
	}) {
		return false
	}
	require.Equal(t, http.StatusOK, status)
	require.NotNil(t, found)
	require.Equal(t, others[0].Record.Lease, found.Session)
	came := time.Now()
	if !goesOn(t, s, others, func() bool { return vacant(t, s, name) }) {
		return false
	}
	life, err := s.Lifetime(ttl)
	require.NoError(t, err)
	require.Less(t, time.Since(came), 3*life.Max)
	return true
}

func TestARecordThatWasLeftBehindFadesBesideOthersAndIsRefreshedNoMore(t *testing.T) {
	t.Parallel()
	inTime(t, func(ttl time.Duration) bool { return whatWasLeftBehindFades(t, ttl) })
}

func whatWasLeftBehindFades(t *testing.T, ttl time.Duration) bool {
	s, client, _ := openAs(t, options)
	records, share := together(t, s, 3, ttl)
	if !share {
		return false
	}
	left, others := records[0], records[1:]
	asked := time.Now()
	if !goesOn(t, s, records, after(ttl/5)) {
		return false
	}
	if !goesOn(t, s, others, func() bool { return vacant(t, s, left.Name) }) {
		return false
	}
	gone := time.Now()
	require.Greater(t, gone.Sub(asked), 2*ttl, "not before a session of its own would have ended")
	_, err := s.Refresh(t.Context(), left.Name, left.Record)
	require.ErrorIs(t, err, kv.ErrStale)
	found, _, err := client.Session().Info(left.Record.Lease, nil)
	if time.Since(gone) > ttl {
		return false // the session of the others may have ended
	}
	require.NoError(t, err)
	require.NotNil(t, found)
	return true
}

// Creates renew the session, too.
func TestWhatWasLeftBehindFadesBesideShortTermsThatNobodyRefreshes(t *testing.T) {
	t.Parallel()
	inTime(t, func(ttl time.Duration) bool {
		s, _, _ := openAs(t, options)
		left := crowdOf(t, s, 1, ttl)[0]
		for end := time.Now().Add(10 * ttl); !vacant(t, s, left.Name); time.Sleep(ttl / 10) {
			require.True(t, time.Now().Before(end), "it takes too long")
			began := time.Now()
			short := crowdOf(t, s, 1, ttl)[0]
			if short.Record.Lease != left.Record.Lease {
				return false // this was too slow to renew it
			}
			err := s.Delete(t.Context(), short.Name, short.Record)
			if time.Since(began) >= ttl {
				return false
			}
			require.NoError(t, err)
		}
		return true
	})
}

// A plain write leaves the session at the key.
func TestWhatAnotherHasWrittenOverARecordIsNotLetGo(t *testing.T) {
	t.Parallel()
	inTime(t, func(ttl time.Duration) bool {
		s, client, _ := openAs(t, options)
		records, share := together(t, s, 2, ttl)
		operator{client}.put(t, records[0].Name, "mine now")
		var got *api.KVPair
		due := after(6 * ttl)
		if !share || !goesOn(t, s, records[1:], func() bool { got = pair(t, client, records[0].Name); return due() }) {
			return false
		}
		require.Equal(t, "mine now", string(got.Value))
		require.Equal(t, records[0].Record.Lease, got.Session)
		return true
	})
}

// With the flags of a lock, it is open to api.Lock when the session has ended.
func TestALockThatAnotherHasWrittenOverARecordIsOpenedAndKeepsWhatItSays(t *testing.T) {
	t.Parallel()
	for _, opts := range []*consulkv.Options{options, {MinTTL: options.MinTTL, Plain: true}} {
		inTime(t, func(ttl time.Duration) bool {
			s, client, _ := openAs(t, opts)
			records, share := together(t, s, 2, ttl)
			key := records[0].Name
			_, err := client.KV().Put(&api.KVPair{Key: key, Value: []byte("mine now"), Flags: api.LockFlagValue}, nil)
			require.NoError(t, err)
			if !share || !goesOn(t, s, records[1:], func() bool { return pair(t, client, key).Session == "" }) {
				return false
			}
			require.Equal(t, "mine now", string(pair(t, client, key).Value))
			require.Greater(t, create(t, s, key, signed("again", ttl)).Token, records[0].Record.Token)
			return true
		})
	}
}

// Consul may have begun to end it when it is renewed. A record that is kept while work goes on
// keeps others out all the same.
func TestARenewalOfASessionThatWasNotRenewedInTimeProvesNothing(t *testing.T) {
	t.Parallel()
	inTime(t, func(ttl time.Duration) bool {
		s, _, requests := openAs(t, options)
		began := time.Now()
		records, share := together(t, s, 2, ttl)
		time.Sleep(ttl)
		told := kvtest.RefreshAll(t, t.Context(), s, records)
		requests.take()
		again := kvtest.RefreshAll(t, t.Context(), s, records)
		renewals := requests.take()["session/renew/"]
		if !share || time.Since(began) >= lives*ttl {
			return false // it may have ended
		}
		for _, v := range told {
			unknown(t, v.Err)
		}
		for _, v := range again {
			require.Error(t, v.Err)
		}
		require.NotZero(t, renewals)
		require.NotEqual(t, records[0].Record.Lease, crowdOf(t, s, 1, ttl)[0].Record.Lease)
		require.Eventually(t, func() bool { return vacant(t, s, records[0].Name) }, 3*time.Minute, 100*time.Millisecond)
		return true
	})
}

// Others are created meanwhile, with another session. Work that goes on after its term keeps its
// record for as long as it takes.
func TestASessionThatWasNotRenewedInTimeIsLostForAsLongAsARecordIsKept(t *testing.T) {
	t.Parallel()
	inTime(t, func(ttl time.Duration) bool {
		s, _, requests := openAs(t, options)
		kept, share := together(t, s, 2, ttl)
		if !share {
			return false
		}
		kept = kept[:1]
		time.Sleep(ttl)
		last := time.Now()
		for over := after(10 * ttl); !over(); time.Sleep(ttl / 4) {
			began := time.Now()
			told := kvtest.RefreshAll(t, t.Context(), s, kept)
			if time.Since(last) > ttl*9/10 {
				return false
			}
			last = began
			require.Error(t, told[0].Err)
			other := crowdOf(t, s, 1, ttl)[0]
			require.NotEqual(t, kept[0].Record.Lease, other.Record.Lease)
			if err := s.Delete(t.Context(), other.Name, other.Record); err != nil {
				require.ErrorIs(t, err, kv.ErrStale)
				return false
			}
		}
		requests.take()
		_, err := s.Refresh(t.Context(), kept[0].Name, kept[0].Record)
		renewals, gone := requests.take()["session/renew/"], vacant(t, s, kept[0].Name)
		left := s.Delete(t.Context(), kept[0].Name, kept[0].Record)
		if time.Since(last) > ttl*9/10 {
			return false
		}
		unknown(t, err)
		require.NotZero(t, renewals)
		require.False(t, gone)
		require.NoError(t, left)
		return true
	})
}

func TestASharedSessionThatAnOperatorEndsIsReplaced(t *testing.T) {
	s, client, _ := openAs(t, options)
	records := crowdOf(t, s, 3, time.Minute)
	_, err := client.Session().Destroy(records[0].Record.Lease, nil)
	require.NoError(t, err)
	for _, v := range kvtest.RefreshAll(t, t.Context(), s, records) {
		require.ErrorIs(t, v.Err, kv.ErrStale)
	}
	again := crowdOf(t, s, 2, time.Minute)
	require.NotEqual(t, records[0].Record.Lease, again[0].Record.Lease)
	require.Equal(t, again[0].Record.Lease, again[1].Record.Lease)
	held(t, kvtest.RefreshAll(t, t.Context(), s, again))
}

func TestNothingIsHandedOverToASharedSession(t *testing.T) {
	s, client, _ := openAs(t, options)
	heir := crowdOf(t, s, 1, time.Minute)[0]
	name := newName()
	rec := create(t, s, name, signed("leader", time.Minute))
	_, err := s.HandOver(t.Context(), name, rec, heir.Name, heir.Record, "")
	require.ErrorIs(t, err, kv.ErrInvalid)
	_, err = consulkv.New(client, options).Swap(t.Context(), name, rec, heir.Record)
	require.ErrorIs(t, err, kv.ErrInvalid)
	_, err = s.Refresh(t.Context(), name, rec)
	require.NoError(t, err)
}
