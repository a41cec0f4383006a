//go:build unix

package consulkv_test

import (
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/consul"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

func TestATTLBelowTheFloorIsRefusedWithTheReason(t *testing.T) {
	client, requests := dialCounted(t, testenv.Consul(t), nil)
	s := consulkv.New(client, nil)
	_, err := s.Lifetime(9 * time.Second)
	require.ErrorIs(t, err, kv.ErrInvalid)
	require.ErrorContains(t, err, "at least 10s")
	require.ErrorContains(t, err, "session_ttl_min")
	_, err = s.Create(t.Context(), newName(), signed("v", 9*time.Second))
	require.ErrorIs(t, err, kv.ErrInvalid)
	require.ErrorContains(t, err, "at least 10s")
	require.Zero(t, requests.count.Load())
}

func TestATTLThatTheServersRefuseIsInvalid(t *testing.T) {
	s := consulkv.New(dial(t, testenv.Consul(t)), &consulkv.Options{MinTTL: time.Millisecond})
	_, err := s.Create(t.Context(), newName(), signed("v", 10*time.Millisecond))
	require.ErrorIs(t, err, kv.ErrInvalid)
	require.ErrorContains(t, err, "Invalid Session TTL")
}

func TestALifetimeIsTwiceTheTTLAndTheLockDelay(t *testing.T) {
	client := dial(t, testenv.Consul(t))
	for _, row := range []struct {
		opts     *consulkv.Options
		min, max time.Duration
	}{
		{nil, 10 * time.Second, 20 * time.Second},
		{&consulkv.Options{LockDelay: 15 * time.Second}, 10 * time.Second, 35 * time.Second},
		{&consulkv.Options{LockDelay: time.Hour}, 10 * time.Second, 80 * time.Second},
		{&consulkv.Options{NodeChecks: []string{"serfHealth"}}, 10 * time.Second, 30 * time.Second},
	} {
		life, err := consulkv.New(client, row.opts).Lifetime(10 * time.Second)
		require.NoError(t, err)
		require.Equal(t, row.min, life.Min)
		require.InDelta(t, row.max, life.Max, float64(2*time.Second))
		require.Greater(t, life.Max, row.max)
	}
}

// To destroy a session that holds a key starts the lock-delay.
func TestASafeThatIsGivenUpIsOpenAtOnceWhateverTheLockDelay(t *testing.T) {
	s := consulkv.New(dial(t, testenv.Consul(t)), &consulkv.Options{MinTTL: ttl, LockDelay: time.Minute})
	name := newName()
	for range 3 {
		rec := create(t, s, name, signed("v", time.Minute))
		require.NoError(t, s.Delete(t.Context(), name, rec))
	}
}

func TestAPrefixIsPutBeforeTheName(t *testing.T) {
	client := dial(t, testenv.Consul(t))
	name := newName()
	s := consulkv.New(client, &consulkv.Options{Prefix: "elections/", MinTTL: ttl})
	rec := create(t, s, name, signed("v", time.Minute))
	require.Equal(t, rec.Lease, pair(t, client, "elections/"+name).Session)
	require.NoError(t, s.Delete(t.Context(), name, rec))

	_, err := s.Get(t.Context(), "/a")
	require.ErrorIs(t, err, kv.ErrInvalid, "the key would have two slashes")
}

// A check that fails ends the session at once; its owner may still trust it.
func TestAFailedCheckDoesNotLetAnotherInBeforeTheTTLHasPassed(t *testing.T) {
	t.Parallel() // it mostly waits
	client := dial(t, testenv.Consul(t))
	check := newName()
	require.NoError(t, client.Agent().CheckRegister(&api.AgentCheckRegistration{
		ID: check, Name: check,
		AgentServiceCheck: api.AgentServiceCheck{TTL: "10m", Status: api.HealthPassing},
	}))
	t.Cleanup(func() { require.NoError(t, client.Agent().CheckDeregister(check)) })
	s := consulkv.New(client, &consulkv.Options{MinTTL: ttl, NodeChecks: []string{check}})
	name := newName()
	const life = 4 * time.Second
	var (
		rec   kv.Record
		start time.Time
	)
	eventually(t, func() (err error) { // until the catalog knows the check
		start = time.Now()
		rec, err = s.Create(t.Context(), name, signed("v", life))
		return err
	})
	info, _, err := client.Session().Info(rec.Lease, nil)
	require.NoError(t, err)
	require.Equal(t, []string{check}, info.NodeChecks)
	require.GreaterOrEqual(t, info.LockDelay, life)

	require.NoError(t, client.Agent().UpdateTTL(check, "broken", api.HealthCritical))
	eventually(t, func() error {
		if _, err := s.Get(t.Context(), name); err != nil {
			require.ErrorIs(t, err, kv.ErrVacant)
			return nil
		}
		return kv.ErrHeld
	})
	ended := time.Since(start)
	require.NoError(t, client.Agent().UpdateTTL(check, "mended", api.HealthPassing))
	other := consulkv.New(client, options)
	_, err = other.Create(t.Context(), name, signed("v", time.Minute))
	if err != nil || time.Since(start) < life { // else this machine was too busy to be refused
		require.ErrorIs(t, err, kv.ErrHeld, "the session ended after %v", ended)
		eventually(t, func() error { _, err := other.Create(t.Context(), name, signed("v", time.Minute)); return err })
	}
	require.Greater(t, time.Since(start), life)

	_, err = s.Lifetime(2 * time.Minute)
	require.ErrorIs(t, err, kv.ErrInvalid, "no lock-delay is that long")
}

func TestAStoreWithoutAClientIsRefusedAtOnce(t *testing.T) {
	store := consulkv.New(nil, nil)
	_, err := election.New(store, "jobs", nil)
	require.ErrorIs(t, err, kv.ErrInvalid)
	require.ErrorContains(t, err, "client is nil")
	_, err = store.Get(t.Context(), "jobs")
	require.ErrorIs(t, err, kv.ErrInvalid)
}

func TestANoteCountsIntoTheSizeOfARecord(t *testing.T) {
	for _, opts := range []*consulkv.Options{options, plain} {
		s, _, _ := openAs(t, opts)
		half := strings.Repeat("x", 200<<10)
		name := newName()
		large := signed(half, time.Minute)
		large.Note = half
		_, err := s.Create(t.Context(), name, large)
		require.ErrorIs(t, err, kv.ErrInvalid)
		require.ErrorContains(t, err, "with its value and note: want up to 327680")
		large.Note = ""
		rec := create(t, s, name, large)
		for _, next := range []kv.Record{rec, signed(half, time.Minute)} {
			next.Note = half
			_, err = s.Swap(t.Context(), name, rec, next)
			require.ErrorIs(t, err, kv.ErrInvalid)
			require.ErrorContains(t, err, "with its value and note: want up to 327680")
		}
		require.NoError(t, s.Delete(t.Context(), name, rec))
	}
}
