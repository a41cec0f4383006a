//go:build unix

package consulkv_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

// inOneStep hands the leader's safe over as it and the heir's record were created.
func (tr *transfer) inOneStep(t *testing.T) (kv.Record, error) {
	t.Helper()
	return tr.s.(kv.HandOver).HandOver(within(t, time.Minute), tr.lead, tr.leader, tr.second, tr.heir, "note")
}

func TestAHandOverInOneStepCostsTwoRequests(t *testing.T) {
	transfers(t, time.Minute, func(t *testing.T, tr *transfer) {
		before := tr.requests.count.Load()
		rec, err := tr.inOneStep(t)
		require.NoError(t, err)
		require.EqualValues(t, 2, tr.requests.count.Load()-before)
		require.Zero(t, tr.requests.lax.Load(), "reads that might have been old")
		lead, second := pair(t, tr.client, tr.lead), pair(t, tr.client, tr.second)
		require.Equal(t, tr.heir.Lease, lead.Session)
		require.Equal(t, lead.ModifyIndex, rec.Token)
		require.Equal(t, lead.ModifyIndex, second.ModifyIndex, "both were written by one transaction")
		require.Equal(t, "heir", tr.valueAt(t, tr.lead))
		require.Equal(t, "heir", tr.valueAt(t, tr.second))
	})
}

// What comes between the read and the transaction.
func TestAHandOverInOneStepDependsOnBothSafes(t *testing.T) {
	for what, meddle := range map[string]func(t *testing.T, tr *transfer) error{
		"the heir leaves": func(t *testing.T, tr *transfer) error {
			return tr.s.Delete(t.Context(), tr.second, tr.heir)
		},
		"the heir publishes": func(t *testing.T, tr *transfer) error {
			next := tr.heir
			next.Note = "ready no more"
			_, err := tr.s.Swap(t.Context(), tr.second, tr.heir, next)
			return err
		},
		"an operator deletes the heir's key": func(_ *testing.T, tr *transfer) error {
			_, err := tr.client.KV().Delete(tr.second, nil)
			return err
		},
		"the heir's session ends": func(_ *testing.T, tr *transfer) error {
			_, err := tr.client.Session().Destroy(tr.heir.Lease, nil)
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			transfers(t, time.Minute, func(t *testing.T, tr *transfer) {
				tr.requests.beforeTxn(func(*http.Request) { require.NoError(t, meddle(t, tr)) })
				_, err := tr.inOneStep(t)
				require.ErrorIs(t, err, kv.ErrStale)
				got, err := tr.s.Refresh(t.Context(), tr.lead, tr.leader)
				require.NoError(t, err)
				require.Equal(t, tr.leader, got)
			})
		})
	}
}

// The other safe's hand-over marks the heir's own record, and leaves it as it is.
func TestAnHeirMayBeHandedTwoSafesAtOnce(t *testing.T) {
	transfers(t, time.Minute, func(t *testing.T, tr *transfer) {
		other := *tr
		other.lead = newName()
		other.leader = create(t, tr.s, other.lead, signed("another leader", time.Minute))
		tr.requests.beforeTxn(func(*http.Request) {
			_, err := other.inOneStep(t)
			require.NoError(t, err)
		})
		rec, err := tr.inOneStep(t)
		require.NoError(t, err)
		require.NoError(t, tr.s.Delete(t.Context(), other.lead, lookAt(t, tr.s, other.lead)))
		require.NoError(t, tr.s.Delete(t.Context(), tr.second, tr.heir))
		got, err := tr.s.Refresh(t.Context(), tr.lead, rec)
		require.NoError(t, err)
		require.Equal(t, rec, got)
	})
}

func lookAt(t *testing.T, s kv.Store, name string) kv.Record {
	t.Helper()
	rec, err := s.Get(t.Context(), name)
	require.NoError(t, err)
	return rec
}

func TestTwoTextsThatAreTooLargeTogetherAreNotHandedOverInOneStep(t *testing.T) {
	transfers(t, time.Minute, func(t *testing.T, tr *transfer) {
		large := tr.heir
		large.Value = strings.Repeat("x", 200<<10)
		var err error
		tr.heir, err = tr.s.Swap(t.Context(), tr.second, tr.heir, large)
		require.NoError(t, err)
		_, err = tr.inOneStep(t)
		require.ErrorIs(t, err, kv.ErrInvalid)
		require.Equal(t, tr.leader, lookAt(t, tr.s, tr.lead))
	})
}
