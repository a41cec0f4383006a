package chronicle_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	memkv "github.com/electkv/election/backends/mem"
	"github.com/electkv/election/cmd/elect/internal/chronicle"
	"github.com/electkv/election/internal/leak"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
)

func TestMain(m *testing.M) { leak.Main(m) }

// ttl is long enough that a busy machine does not keep a leader from a refresh.
const ttl = 5 * time.Second

// An onlooker fails the test if anybody writes through it.
type onlooker struct {
	kv.Store
	t *testing.T
}

func (o onlooker) Create(context.Context, string, kv.Record) (kv.Record, error) {
	o.t.Error("a record was created")
	return kv.Record{}, errors.ErrUnsupported
}

func (o onlooker) Swap(context.Context, string, kv.Record, kv.Record) (kv.Record, error) {
	o.t.Error("a record was swapped")
	return kv.Record{}, errors.ErrUnsupported
}

func (o onlooker) Refresh(context.Context, string, kv.Record) (kv.Record, error) {
	o.t.Error("a record was refreshed")
	return kv.Record{}, errors.ErrUnsupported
}

func (o onlooker) Delete(context.Context, string, kv.Record) error {
	o.t.Error("a record was deleted")
	return errors.ErrUnsupported
}

// Members passes a reading of a roster on.
func (o onlooker) Members(ctx context.Context, name string, most int) ([]kv.Held, uint64, error) {
	return o.Store.(kv.Roster).Members(ctx, name, most)
}

// AwaitMembers passes a wait for a change of a roster on.
func (o onlooker) AwaitMembers(ctx context.Context, name string, version uint64) error {
	return o.Store.(kv.Roster).AwaitMembers(ctx, name, version)
}

// follow has a chronicle follow elections of a store, which it may only read.
func follow(t *testing.T, store kv.Store, names ...string) *chronicle.Chronicle {
	t.Helper()
	c := chronicle.New(onlooker{store, t})
	t.Cleanup(c.Close)
	c.Follow(names...)
	return c
}

// campaign has a candidate campaign for "job" until the test ends.
func campaign(t *testing.T, store kv.Store, id string) {
	t.Helper()
	campaignWith(t, store, &election.Options{ID: id, TTL: ttl})
}

// campaignWith also returns what ends the campaign sooner, and tells when the work has begun. The
// store shows the record before that, and a candidate that is stopped in between removes it, as of
// a term that has not begun.
func campaignWith(t *testing.T, store kv.Store, options *election.Options) (works <-chan struct{}, stop func()) {
	t.Helper()
	candidate, err := election.New(store, "job", options)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	begun, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		once := sync.OnceFunc(func() { close(begun) })
		_ = candidate.Run(ctx, func(ctx context.Context, _ *election.Term) error {
			once()
			<-ctx.Done()
			return nil
		})
	}()
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return begun, stop
}

// await waits until something holds of the election "job".
func await(t *testing.T, c *chronicle.Chronicle, holds func(chronicle.Election) bool) chronicle.Election {
	t.Helper()
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	for {
		r := c.Report(0)
		i := slices.IndexFunc(r.Elections, func(e chronicle.Election) bool { return e.Name == "job" })
		if i >= 0 && holds(r.Elections[i]) {
			return r.Elections[i]
		}
		select {
		case <-r.Next:
		case <-late.C:
			require.FailNow(t, "it did not come about", "%+v", r.Elections)
		}
	}
}

func leads(id string) func(chronicle.Election) bool {
	return func(e chronicle.Election) bool { return e.Now().Owner.ID == id }
}

func succeeds(id string) func(chronicle.Election) bool {
	return func(e chronicle.Election) bool {
		h, ok := e.Heir()
		return ok && h.Owner.ID == id
	}
}

// ends are the terms that are over, and how they ended.
func ends(e chronicle.Election) []string {
	all := []string{}
	for _, s := range e.Spells {
		if s.End != "" {
			all = append(all, s.Owner.ID+" "+string(s.End))
		}
	}
	return all
}

func TestHandOversLossesAndVacanciesAreToldApart(t *testing.T) {
	t.Parallel() // it waits
	store := memkv.New()
	c := follow(t, store, "job")
	e := await(t, c, func(e chronicle.Election) bool { return e.Now().State == chronicle.Vacant })
	require.Empty(t, e.Trouble)

	works, resign := campaignWith(t, store, &election.Options{ID: "anna", TTL: time.Minute})
	await(t, c, leads("anna"))
	<-works
	cable := kvfault.Wrap(store)
	campaign(t, cable.Store, "ben")
	await(t, c, succeeds("ben"))
	resign()
	e = await(t, c, leads("ben"))
	require.Equal(t, []string{"anna handed over"}, ends(e))

	_, last := campaignWith(t, store, &election.Options{ID: "cleo", TTL: time.Minute})
	await(t, c, succeeds("cleo"))
	cable.On().DropRequests()
	e = await(t, c, leads("cleo"))
	require.Equal(t, []string{"anna handed over", "ben lost"}, ends(e))
	cleo := e.Now()
	require.Equal(t, time.Minute, cleo.Owner.TTL)
	require.WithinDuration(t, time.Now(), cleo.Owner.Since, time.Minute)

	await(t, c, func(e chronicle.Election) bool { _, ok := e.Heir(); return !ok })
	time.Sleep(4 * time.Second) // until ben, who has lost the place of the heir too, is forgotten
	last()
	e = await(t, c, func(e chronicle.Election) bool { return e.Now().State == chronicle.Vacant })
	require.Equal(t, []string{"anna handed over", "ben lost", "cleo over"}, ends(e))
	require.Equal(t, 3, e.Terms(0))
}

func TestAVacantElectionTellsUntilWhenAHoldKeepsItClosed(t *testing.T) {
	store := memkv.New()
	begun := time.Now().Add(-time.Minute)
	_, err := store.Create(t.Context(), "job:hold", kv.Record{
		Signature: "anna/N.1", TTL: time.Hour, Lasting: true, Note: fmt.Sprintf(`{"since":%d}`, begun.UnixMilli()),
	})
	require.NoError(t, err)
	c := follow(t, store, "job")
	e := await(t, c, func(e chronicle.Election) bool { return !e.Hold.IsZero() })
	require.WithinDuration(t, begun.Add(time.Hour), e.Hold, time.Second)
	campaign(t, store, "ben") // waits for the end of the hold, while it has the safe
	e = await(t, c, leads("ben"))
	require.Zero(t, e.Hold)
}

func TestTimeInWhichTheStoreCannotBeWatchedIsUnknown(t *testing.T) {
	store := memkv.New()
	view := kvfault.Wrap(store)
	campaign(t, store, "anna")
	for _, err := range election.Watch(t.Context(), store, "job") {
		if err == nil {
			break
		}
	}
	c := follow(t, view.Store, "job")
	e := await(t, c, leads("anna"))
	found := e.Now()
	require.True(t, found.Told, "it led before anybody looked")

	view.On(kvfault.Watch).Fail(errors.New("the cable is cut"))
	e = await(t, c, func(e chronicle.Election) bool { return e.Now().State == chronicle.Unknown })
	require.Contains(t, e.Trouble, "the cable is cut")
	view.Heal()
	e = await(t, c, func(e chronicle.Election) bool { return e.Trouble == "" })
	require.Empty(t, ends(e))
	require.Len(t, e.Spells, 3)
	require.Equal(t, found.Owner.Token, e.Now().Owner.Token)
}

func TestANameThatTheStoreNeverTakesIsAskedForOnce(t *testing.T) {
	c := chronicle.New(memkv.New())
	t.Cleanup(c.Close)
	c.Follow("")
	for r := c.Report(0); r.Elections[0].Trouble == ""; r = c.Report(0) {
		<-r.Next
	}
	seq := c.Report(0).Seq
	time.Sleep(time.Second)
	require.LessOrEqual(t, c.Report(0).Seq, seq+1)
}

func TestAReportHasWhatHasChanged(t *testing.T) {
	store := memkv.New()
	c := follow(t, store, "job", "other", "job")
	await(t, c, func(e chronicle.Election) bool { return e.Now().State == chronicle.Vacant })
	all := c.Report(0)
	for all.Elections[1].Now().State == chronicle.Unknown {
		<-all.Next
		all = c.Report(0)
	}
	require.True(t, all.All)
	require.Len(t, all.Elections, 2)

	none := c.Report(all.Seq)
	require.False(t, none.All)
	require.Empty(t, none.Elections)
	c.Mark("job", chronicle.Mark{At: 5, Who: "anna", What: "is killed"})
	c.Mark("unheard of", chronicle.Mark{})
	c.SetCandidates("job", []chronicle.Candidate{{ID: "anna", State: "dead"}})
	<-none.Next
	some := c.Report(all.Seq)
	require.Len(t, some.Elections, 1)
	require.Equal(t, "job", some.Elections[0].Name)
	require.Equal(t, []chronicle.Mark{{At: 5, Who: "anna", What: "is killed"}}, some.Elections[0].Marks)
	require.Equal(t, []chronicle.Candidate{{ID: "anna", State: "dead"}}, some.Elections[0].Candidates)
	require.True(t, c.Report(some.Seq+1).All, "that is of another chronicle")
}

func TestASearchFollowsWhatItFinds(t *testing.T) {
	store := memkv.New()
	c := follow(t, store)
	asked := make(chan int, 10)
	c.Search(func(_ context.Context, most int) ([]string, bool, error) {
		asked <- most
		return []string{"job", "other"}, true, nil
	})
	require.Equal(t, chronicle.Most, <-asked)
	await(t, c, func(e chronicle.Election) bool { return e.Now().State == chronicle.Vacant })
	r := c.Report(0)
	require.Len(t, r.Elections, 2)
	require.Equal(t, chronicle.Search{On: true, Left: true}, r.Search)
}

func TestASearchThatFailsSaysWhy(t *testing.T) {
	c := follow(t, memkv.New())
	c.Search(func(context.Context, int) ([]string, bool, error) { return nil, false, errors.New("no permission") })
	for r := c.Report(0); r.Search.Trouble != "no permission"; r = c.Report(0) {
		<-r.Next
	}
}
