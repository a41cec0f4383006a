package leaderelection_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
	"github.com/electkv/election/lock/leaderelection"
)

const (
	name  = "billing"
	lease = 15 * time.Second
	renew = 10 * time.Second
)

func nothing() {}

// config is that of client-go's core clients.
func config(store kv.Store, id string, started func(context.Context), stopped func()) leaderelection.LeaderElectionConfig {
	return leaderelection.LeaderElectionConfig{
		Store: store, Name: name, Identity: id,
		LeaseDuration: lease, RenewDeadline: renew, RetryPeriod: 2 * time.Second,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: started, OnStoppedLeading: stopped},
	}
}

// run makes an elector and runs it in the background. It returns the elector and
// what Run returns.
func run(t *testing.T, ctx context.Context, lec leaderelection.LeaderElectionConfig) (*leaderelection.LeaderElector, <-chan error) {
	t.Helper()
	le, err := leaderelection.New(lec)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- le.Run(ctx) }()
	return le, ended
}

func TestTheLeaseIsGivenUpAfterTheWorkHasStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		held := func() bool { _, err := store.Get(t.Context(), name); return err == nil }
		ctx, cancel := context.WithCancel(t.Context())
		var order []string
		le, ended := run(t, ctx, config(store, "a", func(ctx context.Context) {
			order = append(order, "started")
			<-ctx.Done()
			time.Sleep(2 * lease)
			order = append(order, fmt.Sprint("returned, held: ", held()))
		}, func() {
			time.Sleep(2 * lease)
			order = append(order, fmt.Sprint("stopped, held: ", held()))
		}))
		synctest.Wait()
		require.True(t, le.IsLeader())
		require.Equal(t, "a", le.GetLeader())
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.Equal(t, []string{"started", "returned, held: true", "stopped, held: true"}, order)
		require.False(t, held(), "released, though ReleaseOnCancel is not set")
		require.False(t, le.IsLeader())
	})
}

func TestWorkThatOnlyStartsIsStoppedByOnStoppedLeading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		ctx, cancel := context.WithCancel(t.Context())
		stopped := false
		le, ended := run(t, ctx, config(store, "a", func(context.Context) {}, func() { stopped = true }))
		time.Sleep(10 * lease)
		require.True(t, le.IsLeader(), "the return of OnStartedLeading is no resignation")
		require.False(t, stopped)
		cancel()
		<-ended
		require.True(t, stopped)
	})
}

func TestALossEndsTheWorkARenewDeadlineAfterTheLastRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		faults := kvfault.Wrap(store)
		var lost time.Time
		le, ended := run(t, t.Context(), config(faults.Store, "a", func(ctx context.Context) {
			<-ctx.Done()
			lost = time.Now()
		}, nothing))
		synctest.Wait()
		faults.On(kvfault.Refresh, kvfault.Delete, kvfault.HandOver).DropRequests()
		began := time.Now()
		taken := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		_, other := run(t, ctx, config(store, "b", func(context.Context) { close(taken) }, nothing))
		<-taken
		require.Equal(t, renew, lost.Sub(began))
		require.GreaterOrEqual(t, time.Since(began), lease)
		require.False(t, le.IsLeader())
		require.ErrorIs(t, <-ended, election.ErrLost)
		cancel()
		<-other
	})
}

func TestOneLosesAndRunReturnsWithoutCampaigningAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		started, stopped := 0, 0
		le, ended := run(t, t.Context(), config(store, "a", func(context.Context) { started++ }, func() { stopped++ }))
		synctest.Wait()
		store.Remove(name)
		require.ErrorIs(t, <-ended, election.ErrLost)
		require.Equal(t, []int{1, 1}, []int{started, stopped})
		ctx, cancel := context.WithTimeoutCause(t.Context(), lease, errors.New("enough"))
		defer cancel()
		require.ErrorContains(t, le.Run(ctx), "enough", "it may be run again")
		require.Equal(t, []int{2, 2}, []int{started, stopped})
	})
}

func TestWhoNeverLedIsNotToldThatItHasStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		store.Put(name, "host-7")
		ctx, cancel := context.WithTimeout(t.Context(), 5*lease)
		defer cancel()
		le, ended := run(t, ctx, config(store, "a", func(context.Context) { t.Error("started") }, func() { t.Error("stopped") }))
		require.ErrorIs(t, <-ended, context.DeadlineExceeded)
		require.False(t, le.IsLeader())
		require.Equal(t, "host-7", le.GetLeader(), "a lock of another program's")
	})
}

func TestOnNewLeaderIsCalledForEachChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		faults := kvfault.Wrap(store)
		var mu sync.Mutex
		var seen []string
		lec := config(faults.Store, "observer", func(context.Context) {}, nothing)
		lec.Callbacks.OnNewLeader = func(id string) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, id)
		}
		first, stopFirst := context.WithCancel(t.Context())
		_, firstEnded := run(t, first, config(store, "a", func(context.Context) {}, nothing))
		synctest.Wait()
		ctx, stop := context.WithCancel(t.Context())
		le, ended := run(t, ctx, lec)
		synctest.Wait()
		require.Equal(t, "a", le.GetLeader())
		faults.On(kvfault.Watch).Fail(errors.New("connection reset"))
		synctest.Wait()
		faults.Heal()
		time.Sleep(lease)
		stopFirst()
		<-firstEnded
		time.Sleep(lease)
		require.Equal(t, "observer", le.GetLeader())
		stop()
		<-ended
		require.Equal(t, []string{"a", "observer"}, seen)
	})
}

func TestNewTellsWhatIsWrongWithTheConfig(t *testing.T) {
	good := func() leaderelection.LeaderElectionConfig {
		return config(memkv.New(), "a", func(context.Context) {}, nothing)
	}
	for want, spoil := range map[string]func(*leaderelection.LeaderElectionConfig){
		"OnStartedLeading is nil": func(c *leaderelection.LeaderElectionConfig) { c.Callbacks.OnStartedLeading = nil },
		"OnStoppedLeading is nil": func(c *leaderelection.LeaderElectionConfig) { c.Callbacks.OnStoppedLeading = nil },
		"none may be negative":    func(c *leaderelection.LeaderElectionConfig) { c.RetryPeriod = -1 },
		"store is nil":            func(c *leaderelection.LeaderElectionConfig) { c.Store = nil },
		"name is empty":           func(c *leaderelection.LeaderElectionConfig) { c.Name = "" },
		"RenewDeadline 15s is not less than LeaseDuration 15s": func(c *leaderelection.LeaderElectionConfig) { c.RenewDeadline = lease },
		"margin 1ms is too small":                              func(c *leaderelection.LeaderElectionConfig) { c.RenewDeadline = lease - time.Millisecond },
		"TTL 15s is too short for margin 14s":                  func(c *leaderelection.LeaderElectionConfig) { c.RenewDeadline = time.Second },
	} {
		lec := good()
		spoil(&lec)
		le, err := leaderelection.New(lec)
		require.Nil(t, le)
		require.ErrorContains(t, err, "leaderelection: ")
		require.ErrorContains(t, err, want)
		require.Panics(t, func() { leaderelection.RunOrDie(t.Context(), lec) })
	}
	lec := good()
	lec.LeaseDuration, lec.RenewDeadline, lec.RetryPeriod, lec.Identity = 0, 0, 0, ""
	_, err := leaderelection.New(lec)
	require.NoError(t, err, "all have defaults")
}

func TestRunOrDieDiesOfWhatTheStoreCanNeverDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := kvfault.Wrap(memkv.New())
		faults.On(kvfault.Create).Fail(kv.ErrInvalid)
		require.Panics(t, func() {
			leaderelection.RunOrDie(t.Context(), config(faults.Store, "a", func(context.Context) {}, nothing))
		})
		faults.Heal()
		ctx, cancel := context.WithTimeout(t.Context(), lease)
		defer cancel()
		leaderelection.RunOrDie(ctx, config(faults.Store, "a", func(context.Context) {}, nothing))
	})
}

func ExampleRunOrDie() {
	ctx, cancel := context.WithCancel(context.Background())
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Store: memkv.New(), // in place of Lock
		Name:  "billing",
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				fmt.Println("leading")
				cancel() // a shutdown
				<-ctx.Done()
			},
			OnStoppedLeading: func() { fmt.Println("stopped") },
		},
	})
	// Output:
	// leading
	// stopped
}
