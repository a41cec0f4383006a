//go:build unix

package consulkv_test

import (
	"bytes"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/consul"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// seed writes what docs/migrate says: a token to go on from.
func seed(t testing.TB, client *api.Client, key string, token uint64) {
	t.Helper()
	pair := &api.KVPair{Key: key, Flags: api.LockFlagValue, Value: fmt.Appendf(nil, `{"election":1,"token":%d}`, token)}
	ok, _, err := client.KV().CAS(pair, nil) // only where no key is
	require.NoError(t, err)
	require.True(t, ok)
}

func TestTokensGoOnFromTheCompanionOfAKeyThatAnOperatorHasDeleted(t *testing.T) {
	const last = 1_700_000_000_000_000
	s, client, _ := openAs(t, plain)
	name := newName()
	seed(t, client, name, last)
	for i := range 3 {
		rec := create(t, s, name, signed("v", time.Minute))
		require.EqualValues(t, last+1+i, rec.Token)
		operator{client}.remove(t, name)
	}
}

func TestTokensGoOnFromTheOneThatAVacantKeyTellsOf(t *testing.T) {
	inEachForm(t, func(t *testing.T, opts *consulkv.Options) {
		const last = 1_700_000_000_000_000 // microseconds, as Redis has them
		s, client, _ := openAs(t, opts)
		name := newName()
		seed(t, client, name, last)
		_, err := s.Get(t.Context(), name)
		require.ErrorIs(t, err, kv.ErrVacant)

		rec := create(t, s, name, signed("one", time.Minute))
		require.EqualValues(t, last+1, rec.Token)
		rec = publish(t, s, name, rec, "published")
		require.EqualValues(t, last+1, rec.Token)
		got, err := s.Get(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, rec, got)
		rec, err = s.Refresh(t.Context(), name, rec)
		require.NoError(t, err)

		require.NoError(t, s.Delete(t.Context(), name, rec))
		rec = create(t, s, name, signed("after a delete", ttl))
		require.EqualValues(t, last+2, rec.Token)

		for range s.Watch(within(t, time.Minute), name) {
			if _, err = s.Get(t.Context(), name); err != nil {
				break
			}
		}
		require.ErrorIs(t, err, kv.ErrVacant)
		rec = create(t, s, name, signed("after an expiry", time.Minute))
		require.EqualValues(t, last+3, rec.Token)

		rec, err = s.Swap(t.Context(), name, rec, signed("taken over", time.Minute))
		require.NoError(t, err)
		require.EqualValues(t, last+4, rec.Token)

		heir := create(t, s, newName(), signed("heir", time.Minute))
		rec, err = s.Swap(t.Context(), name, rec, heir)
		require.NoError(t, err)
		require.EqualValues(t, last+5, rec.Token)
		got, err = s.Get(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, rec, got)
		require.NoError(t, s.Delete(t.Context(), name, rec))
		require.JSONEq(t, fmt.Sprintf(`{"election":1,"token":%d}`, last+5), string(pair(t, client, name).Value))
	})
}

// The index catches up with a token that is not far above it.
func TestTokensAreIndexesAgainOnceThoseAreLarger(t *testing.T) {
	inEachForm(t, func(t *testing.T, opts *consulkv.Options) {
		s, client, _ := openAs(t, opts)
		name, other := newName(), newName()
		create(t, s, other, signed("v", time.Minute))
		last := pair(t, client, other).ModifyIndex + 40 // others write too
		seed(t, client, name, last)
		index := false
		for range 100 {
			rec := create(t, s, name, signed("v", time.Minute))
			require.Greater(t, rec.Token, last)
			last, index = rec.Token, rec.Token == pair(t, client, name).ModifyIndex
			require.NoError(t, s.Delete(t.Context(), name, rec))
			if index {
				break
			}
		}
		require.True(t, index)
		require.Empty(t, pair(t, client, name).Value)
	})
}

// What is no token of ours does not matter.
func TestOtherValuesOfAVacantKeyAreNoTokens(t *testing.T) {
	s, client, _ := open(t)
	for _, value := range []string{
		"", "host-7", "99999999999", "{}", `{"token":99999999999}`, `{"election":2,"token":99999999999}`,
		`{"election":1,"token":-1}`, fmt.Sprintf(`{"election":1,"token":%d}`, uint64(math.MaxUint64)), fmt.Sprintf(`{"election":1,"token":%d}`, uint64(math.MaxInt64)+1), `{"election":1,"token":1}`,
	} {
		name := newName()
		_, err := client.KV().Put(&api.KVPair{Key: name, Flags: api.LockFlagValue, Value: []byte(value)}, nil)
		require.NoError(t, err)
		rec := create(t, s, name, signed("v", time.Minute))
		require.Equal(t, pair(t, client, name).ModifyIndex, rec.Token, value)
	}
}

// Keys that are copied ("consul kv export" and "import") bring their tokens along. In
// a snapshot that is restored into a new cluster everything after it is lost, tokens
// too: package doc says so, and what to do.
func TestWhatANewClusterKnowsOfTokens(t *testing.T) {
	t.Parallel() // it mostly waits
	inEachForm(t, func(t *testing.T, opts *consulkv.Options) {
		from := testenv.StartConsul(t)
		old := dial(t, from.Addr())
		s := consulkv.New(old, opts)
		name := newName()
		early := create(t, s, name, signed("early", time.Minute))
		require.NoError(t, s.Delete(t.Context(), name, early))
		saved := snapshot(t, old)
		for range 50 {
			_, err := old.KV().Put(&api.KVPair{Key: "other", Value: []byte(newName())}, nil)
			require.NoError(t, err)
		}
		last := create(t, s, name, signed("last", time.Minute))
		last = publish(t, s, name, last, "published")

		to := testenv.StartConsul(t)
		fresh := dial(t, to.Addr())
		for _, key := range []string{name, name + ".election"} {
			copied, _, err := old.KV().Get(key, nil)
			require.NoError(t, err)
			if copied != nil {
				_, err = fresh.KV().Put(&api.KVPair{Key: "copied/" + key, Flags: copied.Flags, Value: copied.Value}, nil)
				require.NoError(t, err)
			}
		}
		there := *opts
		there.Prefix = "copied/"
		rec := create(t, consulkv.New(fresh, &there), name, signed("v", time.Minute))
		require.Greater(t, rec.Token, last.Token, "after a copy")

		require.NoError(t, fresh.Snapshot().Restore(nil, bytes.NewReader(saved)))
		there.Prefix = ""
		restored := consulkv.New(fresh, &there)
		eventually(t, func() (err error) {
			rec, err = restored.Create(t.Context(), name, signed("v", time.Minute))
			return err
		})
		require.Greater(t, rec.Token, early.Token, "what the snapshot knows of")
		require.Less(t, rec.Token, last.Token, "what it does not know of")

		require.NoError(t, restored.Delete(t.Context(), name, rec))
		_, err := fresh.KV().Delete(name, nil)
		require.NoError(t, err)
		seed(t, fresh, name, last.Token)
		rec = create(t, restored, name, signed("v", time.Minute))
		require.Equal(t, last.Token+1, rec.Token)
	})
}
