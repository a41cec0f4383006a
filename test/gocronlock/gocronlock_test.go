package gocronlock_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/lock"
	"github.com/electkv/election/lock/gocronlock"
)

const tick = 20 * time.Millisecond

// A job counts those who run it at the same time.
type job struct {
	inside, runs atomic.Int64
	twice        atomic.Bool
	done         chan string // who ran it
}

func newJob() *job { return &job{done: make(chan string, 1<<10)} }

func (j *job) run(who string) {
	if j.inside.Add(1) != 1 {
		j.twice.Store(true)
	}
	time.Sleep(tick / 4)
	j.inside.Add(-1)
	j.runs.Add(1)
	select {
	case j.done <- who:
	default:
	}
}

// schedule starts a scheduler that runs the job at each tick.
func schedule(t *testing.T, who string, j *job, option gocron.SchedulerOption, more ...gocron.JobOption) gocron.Scheduler {
	t.Helper()
	s, err := gocron.NewScheduler(option)
	require.NoError(t, err)
	_, err = s.NewJob(gocron.DurationJob(tick), gocron.NewTask(j.run, who), append(more, gocron.WithName("report"))...)
	require.NoError(t, err)
	s.Start()
	return s
}

// newLocker returns a locker whose arguments are right.
func newLocker(t *testing.T, store kv.Store, prefix string, opts *lock.Options) *gocronlock.Locker {
	t.Helper()
	l, err := gocronlock.NewLocker(store, prefix, opts)
	require.NoError(t, err)
	return l
}

// A watched locker counts the ticks that are skipped.
type watched struct {
	t       *testing.T
	inner   *gocronlock.Locker
	skipped *atomic.Int64
}

func (w watched) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	l, err := w.inner.Lock(ctx, key)
	if errors.Is(err, lock.ErrHeld) {
		w.skipped.Add(1)
	} else if err != nil && ctx.Err() == nil {
		w.t.Error(err)
	}
	return l, err
}

func TestSchedulersWithALockerRunAJobOneAtATime(t *testing.T) {
	store, j := memkv.New(), newJob()
	var skipped atomic.Int64
	var schedulers []gocron.Scheduler
	for _, who := range []string{"a", "b", "c"} {
		locker := watched{t, newLocker(t, store, "cron/", &lock.Options{ID: who}), &skipped}
		schedulers = append(schedulers, schedule(t, who, j, gocron.WithDistributedLocker(locker)))
	}
	for j.runs.Load() < 30 || skipped.Load() == 0 {
		<-j.done
	}
	for _, s := range schedulers {
		require.NoError(t, s.Shutdown())
	}
	require.False(t, j.twice.Load(), "two ran the job at the same time")
	_, err := store.Get(t.Context(), "cron/report")
	require.ErrorIs(t, err, kv.ErrVacant)
}

func TestALockIsFreedThoughTheSchedulerWasShutDownMeanwhile(t *testing.T) {
	store := memkv.New()
	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(newLocker(t, store, "", nil)))
	require.NoError(t, err)
	started, finish := make(chan struct{}), make(chan struct{})
	var once sync.Once
	_, err = s.NewJob(gocron.DurationJob(time.Hour), gocron.NewTask(func(ctx context.Context) {
		once.Do(func() { close(started) })
		<-ctx.Done()
		<-finish
	}), gocron.WithName("report"), gocron.WithStartAt(gocron.WithStartImmediately()))
	require.NoError(t, err)
	s.Start()
	<-started
	shut := make(chan error)
	go func() { shut <- s.Shutdown() }()
	rec, err := store.Get(t.Context(), "report")
	require.NoError(t, err, "it is held while the job runs")
	require.False(t, rec.Foreign)
	close(finish)
	require.NoError(t, <-shut)
	_, err = store.Get(t.Context(), "report")
	require.ErrorIs(t, err, kv.ErrVacant)
}

func TestASchedulerWhoseClockIsLateSkipsATickWhileTheHoldLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		tick := func(who string) error {
			held, err := newLocker(t, store, "cron/", &lock.Options{ID: who, Hold: 40 * time.Second}).Lock(t.Context(), "report")
			if err != nil {
				return err
			}
			return held.Unlock(t.Context())
		}
		for range 3 {
			require.NoError(t, tick("a"))
			time.Sleep(2 * time.Second)
			require.ErrorIs(t, tick("b"), lock.ErrHeld, "b's clock is late, and a's job was quick")
			time.Sleep(58 * time.Second)
		}
	})
}

func TestALockerTellsWhatIsWrongWithAJobsName(t *testing.T) {
	l, err := newLocker(t, memkv.New(), "", nil).Lock(t.Context(), "line\nbreak")
	require.ErrorContains(t, err, "control characters")
	require.Nil(t, l)
	store := memkv.New()
	store.Put("report", "host-7")
	l, err = newLocker(t, store, "", nil).Lock(t.Context(), "report")
	require.ErrorIs(t, err, lock.ErrHeld)
	require.Nil(t, l)
}

func TestALockerTellsAtOnceWhatIsWrongWithItsArguments(t *testing.T) {
	store := memkv.New()
	for what, wrong := range map[string]struct {
		store  kv.Store
		prefix string
		opts   lock.Options
		want   string
	}{
		"no store": {nil, "", lock.Options{}, "store"},
		"prefix":   {store, "line\nbreak", lock.Options{}, "control characters"},
		"TTL":      {store, "", lock.Options{TTL: -time.Second}, "TTL"},
		"margin":   {store, "", lock.Options{TTL: time.Second, Margin: time.Minute}, "too short for margin"},
		"ID":       {store, "", lock.Options{ID: "line\nbreak"}, "ID"},
	} {
		l, err := gocronlock.NewLocker(wrong.store, wrong.prefix, &wrong.opts)
		require.ErrorContains(t, err, "gocronlock: ", what)
		require.ErrorContains(t, err, wrong.want, what)
		require.Nil(t, l)
	}
}

func TestALockerKeepsTheOptionsThatItWasGiven(t *testing.T) {
	store, opts := memkv.New(), lock.Options{ID: "a"}
	l := newLocker(t, store, "", &opts)
	opts.TTL = -time.Second // for somebody else
	held, err := l.Lock(t.Context(), "report")
	require.NoError(t, err)
	leader, err := election.Current(t.Context(), store, "report")
	require.NoError(t, err)
	require.Equal(t, "a", leader.ID)
	require.NoError(t, held.Unlock(t.Context()))
}

func TestTheSchedulerOfTheLeaderRunsTheJobs(t *testing.T) {
	store, j := memkv.New(), newJob()
	type member struct {
		scheduler gocron.Scheduler
		stop      context.CancelFunc
		ended     chan error
	}
	members := map[string]member{}
	for _, who := range []string{"a", "b"} {
		candidate, err := election.New(store, "cron", &election.Options{ID: who})
		require.NoError(t, err)
		elector := gocronlock.NewElector(candidate)
		require.ErrorIs(t, elector.IsLeader(t.Context()), election.ErrNoLeader)
		ctx, stop := context.WithCancel(t.Context())
		m := member{stop: stop, ended: make(chan error, 1)}
		go func() { m.ended <- elector.Run(ctx) }()
		m.scheduler = schedule(t, who, j, gocron.WithDistributedElector(elector),
			gocron.WithSingletonMode(gocron.LimitModeReschedule)) // nor does it run twice here
		members[who] = m
	}
	first := <-j.done
	for range 10 {
		require.Equal(t, first, <-j.done)
	}
	m := members[first]
	require.NoError(t, m.scheduler.Shutdown())
	m.stop()
	require.ErrorIs(t, <-m.ended, context.Canceled)
	delete(members, first)
	for len(j.done) > 0 {
		<-j.done
	}
	for second, m := range members {
		for range 5 {
			require.Equal(t, second, <-j.done)
		}
		require.NoError(t, m.scheduler.Shutdown())
		m.stop()
		require.ErrorIs(t, <-m.ended, context.Canceled)
	}
	require.False(t, j.twice.Load(), "two ran the job at the same time")
}

func TestAnElectorKnowsTheTermAndItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		candidate, err := election.New(store, "cron", nil)
		require.NoError(t, err)
		elector := gocronlock.NewElector(candidate)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- elector.Run(ctx) }()
		synctest.Wait()
		term, err := elector.Term()
		require.NoError(t, err)
		require.NoError(t, elector.IsLeader(t.Context()))

		store.Put("cron", "host-7")
		<-term.Context().Done()
		require.ErrorIs(t, elector.IsLeader(t.Context()), election.ErrLost)
		store.Remove("cron")
		time.Sleep(time.Minute)
		next, err := elector.Term()
		require.NoError(t, err, "elected again")
		require.Greater(t, next.Token(), term.Token())

		stop()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.ErrorIs(t, elector.IsLeader(t.Context()), election.ErrResigned)
	})
}
