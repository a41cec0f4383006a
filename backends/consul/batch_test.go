//go:build unix

package consulkv_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/consul"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

// crowdOf creates so many records, which may share a session.
func crowdOf(t *testing.T, s kv.Store, n int, ttl time.Duration) []kv.Held {
	t.Helper()
	records := make([]kv.Held, n)
	for i := range records {
		rec := signed("v", ttl)
		rec.Shared = true
		name := newName()
		records[i] = kv.Held{Name: name, Record: create(t, s, name, rec), Share: true}
	}
	return records
}

var errRefused = errors.New("refused by the test")

func isRenewal(req *http.Request) bool { return strings.HasPrefix(req.URL.Path, "/v1/session/renew") }

// held requires that each record was refreshed.
func held(t *testing.T, told []kvtest.Verdict) {
	t.Helper()
	for i, v := range told {
		require.NoError(t, v.Err, "record %d", i)
	}
}

func TestABatchTakesOneTransactionForManyRecords(t *testing.T) {
	for opts, want := range map[*consulkv.Options]int{options: 2, plain: 4} {
		s, _, requests := openAs(t, opts)
		records := crowdOf(t, s, 200, time.Minute)
		requests.take()
		held(t, kvtest.RefreshAll(t, t.Context(), s, records))
		require.Equal(t, map[string]int{"txn": want, "session/renew/": 1}, requests.take())
	}
}

// Their revision is a number in their text, so one look is needed to know their index.
func TestARecordThatWasHandedOverGoesWithOthersOnceItWasSeen(t *testing.T) {
	inEachForm(t, func(t *testing.T, opts *consulkv.Options) {
		s, _, requests := openAs(t, opts)
		name, place := newName(), newName()
		old := create(t, s, name, signed("old", time.Minute))
		heir := create(t, s, place, signed("heir", time.Minute))
		rec, err := s.HandOver(t.Context(), name, old, place, heir, "a note")
		require.NoError(t, err)
		records := append(crowdOf(t, s, 3, time.Minute), kv.Held{Name: name, Record: rec})
		held(t, kvtest.RefreshAll(t, t.Context(), s, records))
		requests.take()
		told := kvtest.RefreshAll(t, t.Context(), s, records)
		held(t, told)
		require.Equal(t, rec, told[3].Record)
		require.Equal(t, map[string]int{"txn": 1, "session/renew/": 2}, requests.take())
		require.NoError(t, s.Delete(t.Context(), name, rec))
		require.ErrorIs(t, kvtest.RefreshAll(t, t.Context(), s, records)[3].Err, kv.ErrStale)
	})
}

// The key is there, and its session may be about to end.
func TestATransactionAloneRefreshesNothing(t *testing.T) {
	s, _, requests := openAs(t, options)
	records := append(crowdOf(t, s, 3, time.Minute), kv.Held{Name: newName()})
	records[3].Record = create(t, s, records[3].Name, signed("alone", time.Minute))
	requests.refuse(func(req *http.Request) error {
		if isRenewal(req) {
			return errRefused
		}
		return nil
	})
	for _, v := range kvtest.RefreshAll(t, t.Context(), s, records) {
		unknown(t, v.Err)
	}
	requests.refuse(nil)
	held(t, kvtest.RefreshAll(t, t.Context(), s, records))
}

func TestARenewalAloneRefreshesNothing(t *testing.T) {
	s, _, requests := openAs(t, options)
	records := crowdOf(t, s, 3, time.Minute)
	requests.refuse(func(req *http.Request) error {
		if !isRenewal(req) {
			return errRefused
		}
		return nil
	})
	requests.take()
	for _, v := range kvtest.RefreshAll(t, t.Context(), s, records) {
		unknown(t, v.Err)
	}
	require.Zero(t, requests.take()["session/renew/"], "a renewal comes after a read")
}

// A server that denies one operation of a transaction carries out none.
func TestWhatADenialDoesNotNameIsNotProved(t *testing.T) {
	addr := testenv.StartConsulWithACL(t).Addr()
	root, _ := dialCounted(t, addr, &api.Config{Token: testenv.ConsulManagementToken})
	others := consulkv.New(root, options)
	denied := kv.Held{Name: "denied-" + newName()}
	eventually(t, func() (err error) {
		denied.Record, err = others.Create(t.Context(), denied.Name, signed("v", time.Minute))
		return err
	})
	client, _ := as(t, root, addr, `key_prefix "" { policy = "write" } session_prefix "" { policy = "write" } key_prefix "denied-" { policy = "deny" }`)
	s := consulkv.New(client, options)
	records := crowdOf(t, s, 3, time.Minute)
	require.NoError(t, others.Delete(t.Context(), records[1].Name, records[1].Record))
	told := kvtest.RefreshAll(t, t.Context(), s, append(records, denied))
	require.NoError(t, told[0].Err)
	require.ErrorIs(t, told[1].Err, kv.ErrStale)
	require.NoError(t, told[2].Err)
	require.Error(t, told[3].Err)
}
