//go:build unix

package consulkv_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/consul"
	"github.com/electkv/election/kv"
)

// A transfer is a leader's safe and its heir's, before the hand-over.
type transfer struct {
	plain        bool
	s            kv.Store
	client       *api.Client
	requests     *wire
	lead, second string
	leader, heir kv.Record
}

// transfers calls f with a new transfer in each form.
func transfers(t *testing.T, ttl time.Duration, f func(t *testing.T, tr *transfer)) {
	t.Helper()
	inEachForm(t, func(t *testing.T, opts *consulkv.Options) { f(t, newTransfer(t, opts, ttl)) })
}

func newTransfer(t *testing.T, opts *consulkv.Options, ttl time.Duration) *transfer {
	t.Helper()
	tr := &transfer{plain: opts.Plain, lead: newName(), second: newName()}
	tr.s, tr.client, tr.requests = openAs(t, opts)
	tr.heir = create(t, tr.s, tr.second, signed("heir", ttl))
	tr.leader = create(t, tr.s, tr.lead, signed("leader", ttl))
	return tr
}

// valueAt returns what the record at a safe's key publishes.
func (tr *transfer) valueAt(t *testing.T, name string) string {
	t.Helper()
	value := string(pair(t, tr.client, name).Value)
	if tr.plain {
		return value
	}
	return kv.Decode(value).Value
}

func (tr *transfer) handOver(t *testing.T) (kv.Record, error) {
	t.Helper()
	next := tr.heir
	next.Value = "you lead"
	return tr.s.Swap(within(t, time.Minute), tr.lead, tr.leader, next)
}

func TestAHandOverIsHeldByTheHeirsSession(t *testing.T) {
	transfers(t, time.Minute, func(t *testing.T, tr *transfer) {
		rec, err := tr.handOver(t)
		require.NoError(t, err)
		require.Equal(t, tr.heir.Lease, rec.Lease)
		lead, second := pair(t, tr.client, tr.lead), pair(t, tr.client, tr.second)
		require.Equal(t, tr.heir.Lease, lead.Session)
		require.Equal(t, tr.heir.Lease, second.Session)
		require.Equal(t, lead.ModifyIndex, rec.Token)
		require.Equal(t, lead.ModifyIndex, second.ModifyIndex, "both were written by one transaction")
		require.Equal(t, uint64(api.LockFlagValue), lead.Flags)
		require.Equal(t, uint64(api.LockFlagValue), second.Flags)
		require.Equal(t, "you lead", tr.valueAt(t, tr.lead))
		require.Equal(t, "heir", tr.valueAt(t, tr.second))
	})
}

// An heir that has not heard of it yet refreshes its own record.
func TestAnHeirKeepsWhatWasHandedOverAliveByRefreshingItsOwnRecord(t *testing.T) {
	inEachForm(t, func(t *testing.T, opts *consulkv.Options) {
		inTime(t, func(ttl time.Duration) bool {
			last := time.Now()
			tr := newTransfer(t, opts, ttl)
			rec, err := tr.handOver(t)
			for i := 0; err == nil && i < 20; i++ {
				time.Sleep(ttl / 4)
				began := time.Now()
				if _, err = tr.s.Refresh(t.Context(), tr.second, tr.heir); err == nil {
					last = began
				}
			}
			got := kv.Record{}
			if err == nil {
				got, err = tr.s.Get(t.Context(), tr.lead)
			}
			if err != nil && time.Since(last) >= ttl {
				return false
			}
			require.NoError(t, err)
			require.Equal(t, rec, got)
			return true
		})
	})
}

func TestASharedSessionOutlivesBothRecordsButIsNotDestroyed(t *testing.T) {
	for _, own := range []bool{true, false} {
		inEachForm(t, func(t *testing.T, opts *consulkv.Options) {
			inTime(t, func(ttl time.Duration) bool {
				began := time.Now()
				tr := newTransfer(t, opts, ttl)
				err := tr.deletesOneByOne(t, own)
				if err != nil && time.Since(began) >= ttl {
					return false
				}
				require.NoError(t, err)
				require.Eventually(t, func() bool { return sessions(t, tr.client, tr.second) == 0 }, 2*time.Minute, 100*time.Millisecond)
				return true
			})
		})
	}
}

// deletesOneByOne hands the safe over, deletes the heir's own record and that, or the other way round,
// and requires that the session that they share lives in between.
func (tr *transfer) deletesOneByOne(t *testing.T, own bool) error {
	t.Helper()
	rec, err := tr.handOver(t)
	if err != nil {
		return err
	}
	first, firstRec, second, secondRec := tr.lead, rec, tr.second, tr.heir
	if own {
		first, firstRec, second, secondRec = second, secondRec, first, firstRec
	}
	if err := tr.s.Delete(t.Context(), first, firstRec); err != nil {
		return err
	}
	got, err := tr.s.Refresh(t.Context(), second, secondRec)
	if err != nil {
		return err
	}
	require.True(t, got.Owns(secondRec))
	return tr.s.Delete(t.Context(), second, secondRec)
}

func TestTheMarkOfASharedSessionOutlivesChangesOfValue(t *testing.T) {
	transfers(t, time.Minute, func(t *testing.T, tr *transfer) {
		rec, err := tr.handOver(t)
		require.NoError(t, err)
		revisions := map[uint64]bool{tr.leader.Revision: true, rec.Revision: true}
		require.Len(t, revisions, 2)
		for _, value := range []string{"one", "two", "one"} {
			next := rec
			next.Value = value
			rec, err = tr.s.Swap(t.Context(), tr.lead, rec, next)
			require.NoError(t, err)
			require.False(t, revisions[rec.Revision], "a revision comes twice")
			revisions[rec.Revision] = true

			heir := tr.heir
			heir.Value = value
			tr.heir, err = tr.s.Swap(t.Context(), tr.second, tr.heir, heir)
			require.NoError(t, err)
		}
		require.NoError(t, tr.s.Delete(t.Context(), tr.second, tr.heir))
		got, err := tr.s.Refresh(t.Context(), tr.lead, rec)
		require.NoError(t, err)
		require.Equal(t, rec, got)

		// The next owner starts afresh.
		require.NoError(t, tr.s.Delete(t.Context(), tr.lead, rec))
		last := create(t, tr.s, tr.lead, signed("v", time.Minute))
		require.False(t, revisions[last.Revision], "a revision comes twice")
		require.Greater(t, last.Token, rec.Token)
		require.NoError(t, tr.s.Delete(t.Context(), tr.lead, last))
	})
}

func TestAnHeirThatLeavesMeanwhileIsNotHandedAnything(t *testing.T) {
	transfers(t, time.Minute, func(t *testing.T, tr *transfer) {
		tr.requests.beforeTxn(func(*http.Request) {
			require.NoError(t, tr.s.Delete(t.Context(), tr.second, tr.heir))
		})
		_, err := tr.handOver(t)
		require.ErrorIs(t, err, kv.ErrStale)
		got, err := tr.s.Refresh(t.Context(), tr.lead, tr.leader)
		require.NoError(t, err)
		require.Equal(t, tr.leader, got)
	})
}

// Its session lives on for a moment, until the delete destroys it.
func TestAnHeirWithoutItsOwnRecordIsGone(t *testing.T) {
	transfers(t, time.Minute, func(t *testing.T, tr *transfer) {
		_, err := tr.client.KV().Delete(tr.second, nil)
		require.NoError(t, err)
		_, err = tr.handOver(t)
		require.ErrorIs(t, err, kv.ErrStale)
		renews(t, tr.client, tr.heir.Lease)
		_, err = tr.s.Refresh(t.Context(), tr.lead, tr.leader)
		require.NoError(t, err)
	})
}

func TestAnHeirWhoseSessionEndsMeanwhileIsGone(t *testing.T) {
	transfers(t, time.Minute, func(t *testing.T, tr *transfer) {
		tr.requests.beforeTxn(func(*http.Request) {
			_, err := tr.client.Session().Destroy(tr.heir.Lease, nil)
			require.NoError(t, err)
		})
		_, err := tr.handOver(t)
		require.ErrorIs(t, err, kv.ErrStale)
		_, err = tr.s.Refresh(t.Context(), tr.lead, tr.leader)
		require.NoError(t, err)
	})
}

func TestAnHeirThatLeavesWhenItIsHandedTheSafeKeepsIt(t *testing.T) {
	transfers(t, time.Minute, func(t *testing.T, tr *transfer) {
		var rec kv.Record
		tr.requests.beforeTxn(func(*http.Request) {
			var err error
			rec, err = tr.handOver(t)
			require.NoError(t, err)
		})
		require.NoError(t, tr.s.Delete(t.Context(), tr.second, tr.heir))
		got, err := tr.s.Refresh(t.Context(), tr.lead, rec)
		require.NoError(t, err)
		require.Equal(t, rec, got)
	})
}

func TestAnHeirMayPublishWhileItIsHandedTheSafe(t *testing.T) {
	transfers(t, time.Minute, func(t *testing.T, tr *transfer) {
		var changed kv.Record
		tr.requests.beforeTxn(func(*http.Request) {
			next := tr.heir
			next.Value = "published meanwhile"
			var err error
			changed, err = tr.s.Swap(t.Context(), tr.second, tr.heir, next)
			require.NoError(t, err)
		})
		_, err := tr.handOver(t)
		require.NoError(t, err)
		got, err := tr.s.Get(t.Context(), tr.second)
		require.NoError(t, err)
		require.Equal(t, changed, got)
	})
}

func TestALeaderThatIsOverwrittenMeanwhileHandsNothingOver(t *testing.T) {
	transfers(t, time.Minute, func(t *testing.T, tr *transfer) {
		tr.requests.beforeTxn(func(*http.Request) {
			_, err := tr.client.KV().Put(&api.KVPair{Key: tr.lead, Value: []byte("a setting")}, nil)
			require.NoError(t, err)
		})
		_, err := tr.handOver(t)
		require.ErrorIs(t, err, kv.ErrStale)
		require.Equal(t, "a setting", string(pair(t, tr.client, tr.lead).Value))
		require.Equal(t, tr.heir.Revision, pair(t, tr.client, tr.second).ModifyIndex, "the heir's own key was not touched")
	})
}

func TestASessionThatCannotBackTheRecordIsRefused(t *testing.T) {
	transfers(t, 10*time.Second, func(t *testing.T, tr *transfer) {
		tr.heir.TTL = time.Minute
		_, err := tr.handOver(t)
		require.ErrorIs(t, err, kv.ErrInvalid)
		require.ErrorContains(t, err, "10s")

		session, _, err := tr.client.Session().CreateNoChecks(&api.SessionEntry{Name: "somebody's", TTL: "1m"}, nil)
		require.NoError(t, err)
		tr.heir.Lease = session
		_, err = tr.handOver(t)
		require.ErrorIs(t, err, kv.ErrInvalid)
		_, err = tr.s.Refresh(t.Context(), tr.lead, tr.leader)
		require.NoError(t, err)
	})
}

func TestASafeGoesRoundAmongHeirs(t *testing.T) {
	transfers(t, time.Minute, func(t *testing.T, tr *transfer) {
		third := newName()
		other := create(t, tr.s, third, signed("third", time.Minute))
		rec, err := tr.handOver(t)
		require.NoError(t, err)
		for _, next := range []kv.Record{other, tr.heir, other} {
			before := rec
			rec, err = tr.s.Swap(t.Context(), tr.lead, rec, next)
			require.NoError(t, err)
			require.Equal(t, next.Signature, rec.Signature)
			require.Greater(t, rec.Token, before.Token)
			require.Greater(t, rec.Revision, before.Revision)
		}
		require.NoError(t, tr.s.Delete(t.Context(), third, other))
		got, err := tr.s.Refresh(t.Context(), tr.lead, rec)
		require.NoError(t, err)
		require.Equal(t, rec, got)
	})
}

// Whoever has led by it would go on passing its guard.
func TestASafeIsNotSignedAnewOnTheSameSession(t *testing.T) {
	transfers(t, time.Minute, func(t *testing.T, tr *transfer) {
		next := signed("again", time.Minute)
		next.Lease = tr.leader.Lease
		_, err := tr.s.Swap(t.Context(), tr.lead, tr.leader, next)
		require.ErrorIs(t, err, kv.ErrInvalid)
		require.ErrorContains(t, err, "want another session")
		got, err := tr.s.Refresh(t.Context(), tr.lead, tr.leader)
		require.NoError(t, err)
		require.Equal(t, tr.leader, got)
		require.NoError(t, tr.s.Delete(t.Context(), tr.lead, tr.leader))
	})
}

func TestTwoTextsThatAreTooLargeTogetherAreNotHandedOver(t *testing.T) {
	transfers(t, time.Minute, func(t *testing.T, tr *transfer) {
		large := tr.heir
		large.Value = strings.Repeat("x", 200<<10)
		var err error
		tr.heir, err = tr.s.Swap(t.Context(), tr.second, tr.heir, large)
		require.NoError(t, err)
		next := tr.heir
		_, err = tr.s.Swap(t.Context(), tr.lead, tr.leader, next)
		require.ErrorIs(t, err, kv.ErrInvalid)
		next.Value = "small"
		_, err = tr.s.Swap(t.Context(), tr.lead, tr.leader, next)
		require.NoError(t, err)
	})
}
