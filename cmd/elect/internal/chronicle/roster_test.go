package chronicle_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	memkv "github.com/electkv/election/backends/mem"
	"github.com/electkv/election/cmd/elect/internal/chronicle"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
)

// cast says in a line who takes part.
func cast(e chronicle.Election) string {
	all := []string{}
	for _, c := range e.Candidates {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s", c.ID, e.Standing(c))))
	}
	return strings.Join(all, ", ")
}

func casts(want string) func(chronicle.Election) bool {
	return func(e chronicle.Election) bool { return cast(e) == want }
}

func TestARosterTellsWhoTakesPart(t *testing.T) {
	t.Parallel() // it waits
	store := memkv.New()
	c := follow(t, store, "job")
	c.ReadRosters()
	stand := func(id string, rank int, store kv.Store) (stop func()) {
		_, stop = campaignWith(t, store, &election.Options{ID: id, TTL: ttl, Rank: rank, Value: "at " + id, Roster: true})
		return stop
	}
	resign := stand("anna", 3, store)
	await(t, c, casts("anna leads"))
	cable := kvfault.Wrap(store)
	stand("ben", 0, store)
	await(t, c, casts("anna leads, ben heir"))
	stand("ben", 7, cable.Store)
	e := await(t, c, casts("anna leads, ben heir, ben waits"))
	require.Equal(t, 3, e.CandidateCount)
	require.Equal(t, []int{3, 0, 7}, []int{e.Candidates[0].Rank, e.Candidates[1].Rank, e.Candidates[2].Rank})
	require.Equal(t, "at anna", e.Candidates[0].Value)
	require.WithinDuration(t, time.Now(), e.Candidates[0].Since, time.Minute)

	cable.On().DropRequests()
	await(t, c, casts("anna leads, ben heir"))
	_, err := store.Create(t.Context(), kv.MemberName("job", "x"), kv.Record{Signature: "no candidate's", Value: "theirs", TTL: time.Hour})
	require.NoError(t, err)
	e = await(t, c, casts("anna leads, ben heir, foreign"))
	require.Equal(t, "theirs", e.Candidates[2].Value)
	resign()
	await(t, c, casts("ben leads, foreign"))
}

func TestARosterThatCannotBeReadTakesNothingElseAway(t *testing.T) {
	store := memkv.New()
	campaignWith(t, store, &election.Options{ID: "anna", TTL: ttl, Roster: true})
	view := kvfault.Wrap(store)
	c := follow(t, view.Store, "job")
	c.ReadRosters()
	await(t, c, casts("anna leads"))
	view.On(kvfault.Get).Fail(errors.New("not allowed"))
	e := await(t, c, func(e chronicle.Election) bool { return e.Unlisted != "" })
	require.Contains(t, e.Unlisted, "not allowed")
	require.Empty(t, e.Candidates)
	require.Empty(t, e.Trouble)
	require.Equal(t, "anna", e.Now().Owner.ID)
	view.Heal()
	e = await(t, c, casts("anna leads"))
	require.Empty(t, e.Unlisted)
}

// A reader notes when the roster of which election is read.
type reader struct {
	onlooker
	mu    sync.Mutex
	reads map[string][]time.Time
	begun time.Time
	fails map[string]error
}

func (r *reader) Members(ctx context.Context, name string, most int) ([]kv.Held, uint64, error) {
	r.mu.Lock()
	r.reads[name] = append(r.reads[name], time.Now())
	err := r.fails[name]
	r.mu.Unlock()
	if errors.Is(err, context.DeadlineExceeded) { // it hangs
		<-ctx.Done()
		return nil, 0, context.Cause(ctx)
	}
	if err != nil {
		return nil, 0, err
	}
	return r.onlooker.Members(ctx, name, most)
}

// count returns how often rosters were read, and those of which elections.
func (r *reader) count() (all int, of map[string]int, since time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of = map[string]int{}
	for name, times := range r.reads {
		of[name] = len(times)
		all += len(times)
	}
	return all, of, time.Since(r.begun)
}

// Reads are bounded in the whole process, however many elections there are.
func TestRostersAreReadAtABoundedRate(t *testing.T) {
	t.Parallel() // it waits
	r := &reader{onlooker: onlooker{memkv.New(), t}, reads: map[string][]time.Time{}, begun: time.Now(), fails: map[string]error{}}
	names := []string{"bad", "hangs", "job"}
	for i := range 20 {
		names = append(names, fmt.Sprint("job-", i))
	}
	r.fails["bad"], r.fails["hangs"] = kv.ErrInvalid, context.DeadlineExceeded
	c := chronicle.New(r)
	t.Cleanup(c.Close)
	c.Follow(names...)
	c.ReadRosters()
	read := func(holds func(map[string]int) bool) {
		t.Helper()
		for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
			all, of, since := r.count()
			require.LessOrEqual(t, all, int(since/(200*time.Millisecond)), "five in a second")
			if holds(of) {
				return
			}
			require.Less(t, time.Since(begun), time.Minute)
		}
	}
	read(func(of map[string]int) bool { return len(of) == len(names) })
	c.Look("job-7")
	read(func(of map[string]int) bool { return of["job-7"] >= 3 })
	_, of, since := r.count()
	require.Equal(t, 1, of["bad"], "it never has a roster")
	require.LessOrEqual(t, of["hangs"], 1+int(since/(7*time.Second)), "each hangs for five seconds, and is followed by a pause")
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, times := range r.reads {
		for i := range times[1:] {
			require.GreaterOrEqual(t, times[i+1].Sub(times[i]), 2*time.Second, name)
		}
	}
}

func TestAStoreWithoutRostersIsNotAskedForThem(t *testing.T) {
	store := memkv.New()
	c := chronicle.New(struct{ kv.Store }{store})
	t.Cleanup(c.Close)
	c.Follow("job")
	c.ReadRosters()
	await(t, c, func(e chronicle.Election) bool { return e.Now().State == chronicle.Vacant })
	time.Sleep(time.Second)
	e := await(t, c, func(chronicle.Election) bool { return true })
	require.Empty(t, e.Unlisted)
}

func TestARosterThatStaysTheSameWakesNobody(t *testing.T) {
	t.Parallel() // it waits
	store := memkv.New()
	campaignWith(t, store, &election.Options{ID: "anna", TTL: ttl, Roster: true})
	c := follow(t, store, "job")
	c.ReadRosters()
	await(t, c, casts("anna leads"))
	require.Eventually(t, func() bool {
		seq := c.Report(0).Seq
		time.Sleep(5 * time.Second) // until it is read twice more
		return c.Report(0).Seq == seq
	}, 30*time.Second, time.Millisecond)
}
