package sim_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/sim"
	"github.com/electkv/election/kv"
)

// An heir's record beside the leader's, as these tests hand over to it.
var heirs = kv.Record{Signature: "b/1", Note: "ready", TTL: 10 * time.Second}

// both puts a leader's record and an heir's in.
func both(ctx context.Context, t *testing.T, n *sim.Node) (leader, heir kv.Record) {
	leader, err := n.Store.Create(ctx, "sim", mine)
	require.NoError(t, err)
	heir, err = n.Store.Create(ctx, "sim:heir", heirs)
	require.NoError(t, err)
	return leader, heir
}

// vacant waits until a safe is, and returns for how long.
func vacant(ctx context.Context, n *sim.Node, name string) time.Duration {
	from := n.Now()
	for _, err := range n.Link.Watch(ctx, name) {
		if err != nil {
			break
		}
	}
	return n.Now() - from
}

func TestEachSafeIsKeptApart(t *testing.T) {
	h := world(t, sim.Schedule{}, func(ctx context.Context, n *sim.Node) {
		leader, heir := both(ctx, t, n)
		require.NoError(t, n.Store.Delete(ctx, "sim", leader))
		got, err := n.Store.Get(ctx, "sim:heir")
		require.NoError(t, err)
		require.Equal(t, heir, got)
		require.Equal(t, "ready", got.Note)
		_, err = n.Store.Get(ctx, "sim:request")
		require.ErrorIs(t, err, kv.ErrVacant)
	})
	safes := []string{}
	for _, e := range h.Of("a", history.Holds) {
		safes = append(safes, e.Safe)
	}
	require.Equal(t, []string{"", history.Heir}, safes)
}

func TestASafeIsHandedOverInOneWrite(t *testing.T) {
	for _, leases := range []bool{false, true} {
		h := world(t, sim.Schedule{Store: sim.StorePlan{Leases: leases}}, func(ctx context.Context, n *sim.Node) {
			leader, heir := both(ctx, t, n)
			next, err := n.Store.Swap(ctx, "sim", leader, heir)
			require.NoError(t, err)
			require.Equal(t, heir.Signature, next.Signature)
			require.Equal(t, heir.Lease, next.Lease)
			require.Greater(t, next.Token, heir.Token)
			require.Equal(t, leases, next.Lease != "")
			_, err = n.Store.Swap(ctx, "sim", leader, heir)
			require.ErrorIs(t, err, kv.ErrStale)
			require.NoError(t, n.Store.Delete(ctx, "sim:heir", heir))
			got, err := n.Store.Get(ctx, "sim")
			require.NoError(t, err, "the other record keeps what both share")
			require.Equal(t, next, got)
		})
		held := []uint64{}
		for _, e := range h.Of("", history.Holds) {
			if e.Safe == "" {
				held = append(held, e.Token)
			}
		}
		require.NotZero(t, held[1], "it was not vacant in between")
	}
}

func TestASafeIsHandedOverInOneStepWhereTheStoreCan(t *testing.T) {
	for _, plan := range []sim.StorePlan{{}, {Whole: true}, {Whole: true, Leases: true}} {
		late := sim.Fault{Kind: sim.PauseBefore, Op: "handover", Window: sim.Window{From: 0, To: time.Minute}, Size: 4 * time.Second}
		world(t, sim.Schedule{Store: plan, Faults: []sim.Fault{late}}, func(ctx context.Context, n *sim.Node) {
			leader, heir := both(ctx, t, n)
			store, ok := n.Store.(kv.HandOver)
			if require.Equal(t, plan.Whole, ok); !ok {
				return
			}
			former := heir
			former.Revision--
			_, err := n.Link.(kv.HandOver).HandOver(ctx, "sim", leader, "sim:heir", former, "note")
			require.ErrorIs(t, err, kv.ErrStale)
			// The pause is over: of the ten seconds of the heir's lease, four are too.
			next, err := store.HandOver(ctx, "sim", leader, "sim:heir", heir, "note")
			require.NoError(t, err)
			require.Equal(t, heir.Signature, next.Signature)
			require.Equal(t, heir.Lease, next.Lease)
			require.Equal(t, "note", next.Note)
			require.Greater(t, next.Token, heir.Token)
			left := 10 * time.Second
			if plan.Leases {
				left = 6 * time.Second
			}
			require.InDelta(t, left, vacant(ctx, n, "sim"), 10)
		})
	}
}

func TestNobodyIsHandedASafeInOneStepWhoseOwnHasGone(t *testing.T) {
	world(t, sim.Schedule{Store: sim.StorePlan{Whole: true, Leases: true, Lines: true}}, func(ctx context.Context, n *sim.Node) {
		leader, heir := both(ctx, t, n)
		store := n.Store.(kv.HandOver)
		own := heir
		own.Signature = leader.Signature
		_, err := store.HandOver(ctx, "sim", leader, "sim:heir", own, "")
		require.ErrorIs(t, err, kv.ErrInvalid)
		place, err := n.Store.(kv.Queue).Join(ctx, "sim", kv.Record{Signature: "c/1", TTL: 10 * time.Second})
		require.NoError(t, err)
		_, err = store.HandOver(ctx, "sim", leader, "sim:heir", heir, "")
		require.ErrorIs(t, err, kv.ErrStale, "it would jump the line")
		require.NoError(t, n.Store.Delete(ctx, "sim", place))
		require.NoError(t, n.Store.Delete(ctx, "sim:heir", heir))
		_, err = store.HandOver(ctx, "sim", leader, "sim:heir", heir, "")
		require.ErrorIs(t, err, kv.ErrStale)
		got, err := n.Store.Get(ctx, "sim")
		require.NoError(t, err)
		require.Equal(t, leader, got)
	})
}

func TestRecordsOfOneLeaseLiveAndDieTogether(t *testing.T) {
	world(t, sim.Schedule{Store: sim.StorePlan{Leases: true}}, func(ctx context.Context, n *sim.Node) {
		leader, heir := both(ctx, t, n)
		_, err := n.Store.Swap(ctx, "sim", leader, heir)
		require.NoError(t, err)
		time.Sleep(6 * time.Second)
		_, err = n.Link.Refresh(ctx, "sim:heir", heir)
		require.NoError(t, err)
		require.Equal(t, 10*time.Second, vacant(ctx, n, "sim"), "the heir's refresh has kept it alive")
		require.Zero(t, vacant(ctx, n, "sim:heir"))
	})
}

// The lease is made to live before the write that it backs is carried out: of a
// write that is late it is not the TTL that is left.
func TestALateHandOverLivesFromTheStartOfTheCall(t *testing.T) {
	for _, leases := range []bool{false, true} {
		late := sim.Fault{Kind: sim.PauseBefore, Op: "swap", Window: sim.Window{From: 0, To: time.Minute}, Size: 4 * time.Second}
		world(t, sim.Schedule{Store: sim.StorePlan{Leases: leases}, Faults: []sim.Fault{late}}, func(ctx context.Context, n *sim.Node) {
			leader, heir := both(ctx, t, n)
			time.Sleep(3 * time.Second)
			_, err := n.Store.Swap(ctx, "sim", leader, heir)
			require.NoError(t, err)
			require.InDelta(t, 6*time.Second, vacant(ctx, n, "sim"), 10)
		})
	}
}

func TestAHandOverToALeaseThatIsGoneIsStale(t *testing.T) {
	world(t, sim.Schedule{Store: sim.StorePlan{Leases: true}}, func(ctx context.Context, n *sim.Node) {
		leader, heir := both(ctx, t, n)
		require.NoError(t, n.Store.Delete(ctx, "sim:heir", heir))
		_, err := n.Store.Swap(ctx, "sim", leader, heir)
		require.ErrorIs(t, err, kv.ErrStale)
		own := heir
		own.Lease = leader.Lease
		_, err = n.Store.Swap(ctx, "sim", leader, own)
		require.ErrorIs(t, err, kv.ErrInvalid)
		own.Lease = ""
		next, err := n.Store.Swap(ctx, "sim", leader, own)
		require.NoError(t, err)
		require.NotEmpty(t, next.Lease, "it gets one as a create does")
		require.Equal(t, 10*time.Second, vacant(ctx, n, "sim"))
	})
}

func TestNobodyIsHandedASafeBeforeOthersInLine(t *testing.T) {
	world(t, sim.Schedule{Store: sim.StorePlan{Lines: true}}, func(ctx context.Context, n *sim.Node) {
		leader, heir := both(ctx, t, n)
		_, err := n.Store.(kv.Queue).Join(ctx, "sim", kv.Record{Signature: "c/1", TTL: 10 * time.Second})
		require.NoError(t, err)
		_, err = n.Store.Swap(ctx, "sim", leader, heir)
		require.ErrorIs(t, err, kv.ErrStale)
	})
}

func TestAnOperatorAndOldClientsComeToTheSafeThatTheScheduleSays(t *testing.T) {
	at := func(kind sim.Kind, from time.Duration) sim.Fault {
		return sim.Fault{Kind: kind, Who: sim.Everybody, Safe: history.Heir, Window: sim.Window{From: from, To: from + time.Second}}
	}
	h := world(t, sim.Schedule{Faults: []sim.Fault{at(sim.Remove, 2*time.Second), at(sim.Foreign, 3*time.Second)}}, func(ctx context.Context, n *sim.Node) {
		leader, _ := both(ctx, t, n)
		time.Sleep(5 * time.Second)
		got, err := n.Store.Get(ctx, "sim")
		require.NoError(t, err)
		require.Equal(t, leader, got)
	})
	for _, kind := range []history.Kind{history.Interfered, history.Placed, history.Found} {
		found := h.Of("", kind)
		require.Len(t, found, 1, kind)
		require.Equal(t, history.Heir, found[0].Safe)
	}
}
