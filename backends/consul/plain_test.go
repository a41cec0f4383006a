//go:build unix

package consulkv_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/consul"
	"github.com/electkv/election/kv"
)

func companion(name string) string { return name + ".election" }

// absent requires that there is no such key.
func absent(t testing.TB, client *api.Client, key string) {
	t.Helper()
	got, _, err := client.KV().Get(key, &api.QueryOptions{RequireConsistent: true})
	require.NoError(t, err)
	require.Nil(t, got)
}

// end ends a session as its expiry does.
func end(t testing.TB, client *api.Client, session string) {
	t.Helper()
	_, err := client.Session().Destroy(session, nil)
	require.NoError(t, err)
}

// lost requires that rec is not in the safe for its owner, whatever it tries.
func lost(t *testing.T, s kv.Store, name string, rec kv.Record) {
	t.Helper()
	next := rec
	next.Value += "+"
	_, err := s.Refresh(t.Context(), name, rec)
	require.ErrorIs(t, err, kv.ErrStale)
	_, err = s.Swap(t.Context(), name, rec, next)
	require.ErrorIs(t, err, kv.ErrStale)
	_, err = s.Swap(t.Context(), name, rec, signed("taken over", time.Minute))
	require.ErrorIs(t, err, kv.ErrStale)
	require.ErrorIs(t, s.Delete(t.Context(), name, rec), kv.ErrStale)
}

// taken requires that the safe is somebody else's, and returns the record.
func taken(t *testing.T, s kv.Store, name, value string) kv.Record {
	t.Helper()
	got, err := s.Get(t.Context(), name)
	require.NoError(t, err)
	require.True(t, got.Foreign)
	require.Equal(t, value, got.Value)
	_, err = s.Create(t.Context(), name, signed("v", time.Minute))
	require.ErrorIs(t, err, kv.ErrHeld)
	_, err = s.Refresh(t.Context(), name, got)
	require.ErrorIs(t, err, kv.ErrInvalid)
	require.ErrorIs(t, s.Delete(t.Context(), name, got), kv.ErrInvalid)
	return got
}

// succeed requires that the safe is vacant, and that it can be had and given up.
func succeed(t *testing.T, s kv.Store, name string) {
	t.Helper()
	_, err := s.Get(t.Context(), name)
	require.ErrorIs(t, err, kv.ErrVacant)
	rec := create(t, s, name, signed("the next", time.Minute))
	got, err := s.Refresh(t.Context(), name, rec)
	require.NoError(t, err)
	require.Equal(t, rec, got)
	require.NoError(t, s.Delete(t.Context(), name, rec))
}

func TestAPlainValueStandsAtTheKeyByItself(t *testing.T) {
	s, client, _ := openAs(t, plain)
	name := newName()
	rec := create(t, s, name, signed("10.0.0.7:80", time.Minute))
	first := pair(t, client, name)
	for i, value := range []string{"10.0.0.7:80", "10.0.0.7:80", "10.0.0.7:81", "", "", "-", "-", "\x00\xff", "10.0.0.7:80"} {
		next := rec
		next.Value, next.Note = value, strconv.Itoa(i/2) // each by itself, both, and neither
		var err error
		rec, err = s.Swap(t.Context(), name, rec, next)
		require.NoError(t, err)
		key, beside := pair(t, client, name), pair(t, client, companion(name))
		require.Equal(t, value, string(key.Value))
		require.Equal(t, first.LockIndex, key.LockIndex, "it is the same lock")
		for _, p := range []*api.KVPair{key, beside} {
			require.Equal(t, uint64(api.LockFlagValue), p.Flags)
			require.Equal(t, rec.Lease, p.Session)
		}
		require.Equal(t, key.ModifyIndex, beside.ModifyIndex, "they change at once")
		text := kv.Decode(string(beside.Value))
		require.Equal(t, rec.Signature, text.Signature)
		require.Empty(t, text.Value)
		require.Equal(t, next.Note, text.Note)
	}
	require.NoError(t, s.Delete(t.Context(), name, rec))
	require.Empty(t, pair(t, client, name).Value)
	require.Empty(t, pair(t, client, name).Session)
	absent(t, client, companion(name))
}

func TestAPlainValueThatExpiredIsNoLeader(t *testing.T) {
	s, client, _ := openAs(t, plain)
	name := newName()
	rec := create(t, s, name, signed("v", ttl))
	eventually(t, func() error {
		if _, err := s.Get(t.Context(), name); err == nil {
			return kv.ErrHeld
		}
		return nil
	})
	require.Equal(t, "v", string(pair(t, client, name).Value))
	require.Empty(t, pair(t, client, companion(name)).Session)
	lost(t, s, name, rec)
	succeed(t, s, name)
	absent(t, client, companion(name))
}

// Each keeps out the other, and nobody's record is changed.
func TestRecordsInTheOtherFormAreForeign(t *testing.T) {
	texts, _, _ := openAs(t, options)
	plains, _, _ := openAs(t, plain)
	for _, value := range []string{"v", "", kv.Encode(signed("inner", time.Minute))} {
		name := newName()
		rec := create(t, texts, name, signed(value, time.Minute))
		got, err := plains.Get(t.Context(), name)
		require.NoError(t, err)
		taken(t, plains, name, got.Value)
		require.NoError(t, texts.Delete(t.Context(), name, rec))

		rec = create(t, plains, name, signed(value, time.Minute))
		got, err = texts.Get(t.Context(), name)
		require.NoError(t, err)
		require.False(t, got.Owns(rec))
		_, err = texts.Create(t.Context(), name, signed("v", time.Minute))
		require.ErrorIs(t, err, kv.ErrHeld)
		lost(t, texts, name, rec)
		same, err := plains.Refresh(t.Context(), name, rec)
		require.NoError(t, err)
		require.Equal(t, rec, same)
		require.NoError(t, plains.Delete(t.Context(), name, rec))
	}
}

func TestAPlainWriteOverAPlainValueIsForeign(t *testing.T) {
	s, client, _ := openAs(t, plain)
	for _, flags := range []uint64{0, api.LockFlagValue} {
		for _, value := range []string{"mine now", "", "v"} { // v is what was there
			name := newName()
			rec := create(t, s, name, signed("v", time.Minute))
			_, err := client.KV().Put(&api.KVPair{Key: name, Value: []byte(value), Flags: flags}, nil)
			require.NoError(t, err)
			require.Equal(t, rec.Lease, pair(t, client, name).Session)
			lost(t, s, name, rec)
			got := taken(t, s, name, value)
			require.NotEqual(t, rec.Revision, got.Revision)

			end(t, client, rec.Lease)
			if flags == 0 {
				require.True(t, taken(t, s, name, value).Permanent)
			} else {
				succeed(t, s, name)
			}
		}
	}
}

// Nobody else gets in before its owner's session has ended.
func TestWithoutItsCompanionAPlainValueIsNobodysRecord(t *testing.T) {
	s, client, _ := openAs(t, plain)
	for what, spoil := range map[string]func(key string, was *api.KVPair) error{
		"deleted": func(key string, _ *api.KVPair) error {
			_, err := client.KV().Delete(key, nil)
			return err
		},
		"written over": func(key string, _ *api.KVPair) error {
			_, err := client.KV().Put(&api.KVPair{Key: key, Value: []byte("a note")}, nil)
			return err
		},
		"written over as it was": func(_ string, was *api.KVPair) error {
			_, err := client.KV().Put(was, nil)
			return err
		},
		"deleted and locked again": func(key string, was *api.KVPair) error {
			if _, err := client.KV().Delete(key, nil); err != nil {
				return err
			}
			_, _, err := client.KV().Acquire(was, nil)
			return err
		},
		"released": func(_ string, was *api.KVPair) error {
			_, _, err := client.KV().Release(was, nil)
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			name := newName()
			rec := create(t, s, name, signed("v", time.Minute))
			require.NoError(t, spoil(companion(name), pair(t, client, companion(name))))
			lost(t, s, name, rec)
			got := taken(t, s, name, "v")
			require.False(t, got.Permanent)
			require.NotEqual(t, rec.Revision, got.Revision)
			renews(t, client, rec.Lease)

			end(t, client, rec.Lease)
			if what == "written over" {
				require.Equal(t, "a note", taken(t, s, name, "a note").Value)
				_, err := client.KV().Delete(companion(name), nil)
				require.NoError(t, err)
			}
			succeed(t, s, name)
		})
	}
}

// One transaction writes both keys, as ours do, but for two sessions, or without
// the lock flags, or in a version from the future.
func TestOneTransactionIsNoProofWithoutOneLockAndARecord(t *testing.T) {
	s, client, _ := openAs(t, plain)
	record := kv.Encode(signed("", time.Minute))
	for what, c := range map[string]struct {
		key, companion uint64
		text           string
	}{
		"two sessions":               {api.LockFlagValue, api.LockFlagValue, record},
		"a key without a flag":       {0, api.LockFlagValue, record},
		"a companion without a flag": {api.LockFlagValue, 0, record},
		"a text from the future":     {api.LockFlagValue, api.LockFlagValue, `{"election":2,"signature":"s","ttl_ms":1000}`},
	} {
		name := newName()
		var ids []string
		for range 2 {
			id, _, err := client.Session().CreateNoChecks(&api.SessionEntry{TTL: "1m"}, nil)
			require.NoError(t, err)
			ids = append(ids, id)
		}
		if what != "two sessions" {
			ids[1] = ids[0]
		}
		done, _, _, err := client.KV().Txn(api.KVTxnOps{
			{Verb: api.KVLock, Key: name, Value: []byte("v"), Flags: c.key, Session: ids[0]},
			{Verb: api.KVLock, Key: companion(name), Value: []byte(c.text), Flags: c.companion, Session: ids[1]},
		}, nil)
		require.NoError(t, err)
		require.True(t, done)
		taken(t, s, name, "v")
	}
}

// What stands beside a vacant key may be somebody else's.
func TestSomebodyElsesKeyAtTheCompanionIsReportedAndNeverChanged(t *testing.T) {
	s, client, requests := openAs(t, plain)
	name := newName()
	lock := lockOf(t, client, companion(name), 0)
	_, err := lock.Lock(nil)
	require.NoError(t, err)
	require.False(t, taken(t, s, name, "host-7").Permanent)
	require.Equal(t, "host-7", string(pair(t, client, companion(name)).Value))
	require.NoError(t, lock.Unlock())
	require.True(t, taken(t, s, name, "host-7").Permanent)
	operator{client}.remove(t, companion(name))
	succeed(t, s, name)

	name = newName()
	requests.beforeTxn(func(*http.Request) { operator{client}.put(t, companion(name), "a setting") })
	_, err = s.Create(t.Context(), name, signed("v", time.Minute))
	require.ErrorIs(t, err, kv.ErrHeld)
	require.True(t, taken(t, s, name, "a setting").Permanent)
	require.Equal(t, "a setting", string(pair(t, client, companion(name)).Value))
	absent(t, client, name)
	require.Zero(t, sessions(t, client, name))
}

// An operator has deleted both keys of a record, and somebody has put the second one to another use.
func TestWhatStandsAtTheCompanionOfADeletedKeyIsReplacedIfItIsOursOnly(t *testing.T) {
	s, client, _ := openAs(t, plain)
	for value, ours := range map[string]bool{
		"a setting":                        false,
		"{}":                               false,
		`{"election":"2028"}`:              false,
		`{"election":0}`:                   false,
		"[1]":                              false,
		"":                                 true, // nothing is lost
		kv.Encode(signed("", time.Minute)): true,
		`{"election":1,"token":7}`:         true,
		`{"election":2,"what":"a later release may leave"}`: true,
	} {
		name := newName()
		create(t, s, name, signed("v", time.Minute))
		for _, key := range []string{name, companion(name)} {
			operator{client}.remove(t, key)
		}
		_, err := client.KV().Put(&api.KVPair{Key: companion(name), Value: []byte(value), Flags: api.LockFlagValue}, nil)
		require.NoError(t, err)
		if !ours {
			require.True(t, taken(t, s, name, value).Permanent)
			require.Equal(t, value, string(pair(t, client, companion(name)).Value))
			operator{client}.remove(t, companion(name))
		}
		succeed(t, s, name)
	}
}

// The companion was deleted, or written over, after the owner has read it.
func TestAnOwnerWritesNothingOnceItsCompanionHasChanged(t *testing.T) {
	s, client, requests := openAs(t, plain)
	for what, write := range ownersWrites(t, s) {
		for _, gone := range []bool{true, false} {
			name := newName()
			rec := create(t, s, name, signed("v", time.Minute))
			requests.beforeTxn(func(*http.Request) {
				if gone {
					operator{client}.remove(t, companion(name))
				} else {
					operator{client}.put(t, companion(name), "a note")
				}
			})
			require.ErrorIs(t, write(name, rec), kv.ErrStale, what)
			require.Equal(t, rec.Revision, pair(t, client, name).ModifyIndex, what)
			require.Equal(t, "v", string(pair(t, client, name).Value), what)
			if gone {
				absent(t, client, companion(name))
			} else {
				require.Equal(t, "a note", string(pair(t, client, companion(name)).Value), what)
			}
		}
	}
}

// The first one was carried out, and written over, before the second came.
func TestARecordThatWasCreatedTwiceAndWrittenOverIsForeign(t *testing.T) {
	for _, opts := range []*consulkv.Options{options, plain} {
		s, client, requests := openAs(t, opts)
		name := newName()
		requests.beforeTxn(func(req *http.Request) {
			ahead(t, requests, req)
			operator{client}.put(t, name, "mine now")
		})
		got, err := s.Create(t.Context(), name, signed("v", time.Minute))
		require.ErrorIs(t, err, kv.ErrHeld, "%+v", got)
		require.Equal(t, "mine now", string(pair(t, client, name).Value))
		require.Zero(t, sessions(t, client, name))

		name = newName()
		old := create(t, s, name, signed("v", time.Minute))
		requests.beforeTxn(func(req *http.Request) {
			ahead(t, requests, req)
			operator{client}.put(t, name, "mine now")
		})
		got, err = s.Swap(t.Context(), name, old, signed("taken over", time.Minute))
		require.ErrorIs(t, err, kv.ErrStale, "%+v", got)
		require.Equal(t, "mine now", string(pair(t, client, name).Value))
		require.Equal(t, 1, sessions(t, client, name), "the old owner's, which is left to expire")
	}
}

// Both keys are read at one instant: a mixture of two states would prove nothing,
// and end the term.
func TestAPlainValueIsNeverForeignWhileItsOwnerPublishes(t *testing.T) {
	s, _, requests := openAs(t, plain)
	name := newName()
	rec := create(t, s, name, signed("v", time.Minute))
	before := requests.count.Load()
	_, err := s.Get(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, before+1, requests.count.Load())

	published := make(chan error, 1)
	go func() {
		last := rec
		for i := range 300 {
			next := last
			next.Value, next.Note = strconv.Itoa(i/2), strconv.Itoa(i)
			var err error
			if last, err = s.Swap(t.Context(), name, last, next); err != nil {
				published <- err
				return
			}
		}
		published <- nil
	}()
	for len(published) == 0 {
		got, err := s.Refresh(t.Context(), name, rec)
		require.NoError(t, err)
		require.True(t, got.Owns(rec))
	}
	require.NoError(t, <-published)
}
