//go:build linux

package interop

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/internal/witness"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/test/interop/coexist"
)

// A setup says what a fleet is made of.
type setup struct {
	lock   string // the old one
	store  string
	key    string        // where an old observer finds it, with %s for its name
	pref   string        // what ours puts before the name
	suffix string        // and behind it
	ttl    time.Duration // of all
	hold   [2]time.Duration
	rest   [2]time.Duration
	calm   bool // the old ones are not killed: their own TTL is longer than the test
	plain  bool
	// layout is that of safes in etcd.
	layout string
	// command is the executable of a lock that is one.
	command string
	bug     string // planted in ours
	// operated is set if an operator ends what dead old ones leave behind.
	operated bool
	spared   bool // ours are left alone
	// backstop is that of ours, in Redis.
	backstop time.Duration
	// recovers is how long a client takes to find a server that it can reach
	// again.
	recovers time.Duration
	// notice is within what time after the record of one of ours was deleted its
	// term is over.
	notice time.Duration
	// dead is for how long one that has died keeps the others out.
	dead time.Duration
	// luck is how often in a row one kind may hold. Where there is no line it only bounds for how
	// long one may be shut out.
	luck int
	// surely is how long a holder of the lock is in the store for the watch of ours
	// to have to see it.
	surely time.Duration
}

// shut is for how long a kind may be shut out: the others may be lucky, a
// quarter of their terms be long, and three of them die in a row; whoever was cut
// off needs some time to find the store again.
func (s setup) shut() (total time.Duration) {
	for range s.luck {
		total += s.hold[1] + long(s.ttl)/4
	}
	return total + 3*s.dead + 5*impatience
}

// slower returns the setup for a machine on which it was too quick.
func (s setup) slower() setup {
	for _, d := range []*time.Duration{&s.ttl, &s.hold[0], &s.hold[1], &s.rest[0], &s.rest[1], &s.recovers, &s.notice, &s.dead, &s.surely} {
		*d *= 2
	}
	return s
}

// A fleet is two processes with an old lock and two with ours, on one key, each
// of which reaches the server by a link of its own.
type fleet struct {
	setup
	t       testing.TB
	addr    string // of the server
	name    string
	at      string // the key, as an old observer reads it
	dir     string
	actors  []*actor
	sampler *sampler
	store   kv.Store // ours, without a link, for the watch

	about history.About
	past  witness.Chronicle

	mu      sync.Mutex
	holds   map[string]bool // who believes to
	seen    []report
	told    map[string][]string // what old observers told, by their names
	watches sync.WaitGroup
	stop    context.CancelFunc
	failed  []string // what the watchers and samplers came to
}

// A report is what the watch of ours has told.
type report struct {
	at     time.Duration
	leader election.Leader
	vacant bool
}

// newFleet starts what looks on, and no processes yet.
func newFleet(t testing.TB, s setup, addr string) *fleet {
	t.Helper()
	f := &fleet{setup: s, t: t, addr: addr, name: "fleet-" + strings.ToLower(rand.Text()[:10]), holds: map[string]bool{}, told: map[string][]string{}}
	f.at = fmt.Sprintf(s.key, f.name)
	var err error
	f.dir, err = os.MkdirTemp("", "fleet") //nolint:usetesting // the path of a socket must be short
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(f.dir) })
	f.about.Title = t.Name()
	f.about.Command = fmt.Sprintf("go test . -run '^%s$' -interop.seed=%d -interop.stretch=%v", t.Name(), *seed, *stretch)
	f.about.Seed, f.about.TTL = *seed, s.ttl

	store, name, closeStore, err := f.part("watch", ours, addr).open()
	require.NoError(t, err)
	t.Cleanup(closeStore)
	f.store = store
	ctx, cancel := context.WithCancel(context.Background())
	f.stop = cancel
	t.Cleanup(f.leave)
	f.sampler = f.sample()
	f.watches.Go(func() { f.fault("the sampler", f.sampler.run(ctx)) })
	f.watches.Go(func() { f.watch(ctx, name) })
	if s.store == inEtcd {
		client, err := part{Addr: addr}.etcd()
		require.NoError(t, err)
		f.watches.Go(func() {
			defer client.Close()
			f.fault("the old observer", f.observe(ctx, client))
		})
		if s.command != "" {
			f.watches.Go(func() { f.fault("etcdctl elect --listen", f.listen(ctx)) })
		}
	}
	return f
}

// heard notes what an old observer told.
func (f *fleet) heard(observer, value string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told[observer] = append(f.told[observer], value)
}

// sample returns the sampler of the fleet's store.
func (f *fleet) sample() *sampler {
	switch f.setup.store {
	case inConsul:
		s, err := sampleConsul(f.addr, f.at)
		require.NoError(f.t, err)
		return s
	case inEtcd:
		client, err := part{Addr: f.addr}.etcd()
		require.NoError(f.t, err)
		f.t.Cleanup(func() { client.Close() })
		return sampleEtcd(client, f.at)
	}
	return sampleRedis(f.addr, f.at)
}

// leave ends all that goes on.
func (f *fleet) leave() {
	for _, a := range f.actors {
		_ = a.kill()
	}
	f.stop()
	f.watches.Wait()
}

func (f *fleet) fault(what string, err error) {
	if err != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.failed = append(f.failed, fmt.Sprintf("%s: %v", what, err))
	}
}

// watch notes what the watch of ours tells.
func (f *fleet) watch(ctx context.Context, name string) {
	for leader, err := range election.Watch(ctx, f.store, name) {
		if ctx.Err() != nil {
			return
		}
		if err != nil && !errors.Is(err, election.ErrNoLeader) {
			f.fault("the watch of ours", err)
			return
		}
		f.mu.Lock()
		f.seen = append(f.seen, report{boottime.Now(), leader, err != nil})
		f.mu.Unlock()
	}
}

func (f *fleet) part(who, lock, addr string) part {
	return part{
		Who: who, Lock: lock, Store: f.setup.store, Addr: addr, Key: f.name, Prefix: f.pref, Suffix: f.suffix, TTL: f.ttl,
		Socket: socketIn(f.dir, who), Hold: f.hold, Rest: f.rest, Backstop: f.backstop,
		Layout: f.layout, Plain: f.plain, Command: f.command,
	}
}

// enter starts processes, old ones if their names begin so.
func (f *fleet) enter(names ...string) {
	f.t.Helper()
	for _, who := range names {
		lock := ours
		if coexist.IsOld(who) {
			lock = f.lock
		}
		link := testenv.NewProxy(f.t, f.addr)
		a := &actor{part: f.part(who, lock, link.Addr()), link: link}
		if lock == ours {
			a.part.Bug = f.bug
		}
		require.NoError(f.t, a.start(f.note))
		f.actors = append(f.actors, a)
	}
}

func (f *fleet) actor(who string) *actor {
	for _, a := range f.actors {
		if a.part.Who == who {
			return a
		}
	}
	f.t.Fatalf("%s is not of the fleet", who)
	return nil
}

// note takes an event into the history.
func (f *fleet) note(e history.Event) {
	f.past.Note(e)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch e.Kind {
	case history.Elected:
		f.holds[e.Who] = true
	case history.Ended, history.Killed:
		delete(f.holds, e.Who)
	}
}

// holder returns somebody of a kind who believes to hold.
func (f *fleet) holder(old bool) (string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for who := range f.holds {
		if coexist.IsOld(who) == old {
			return who, true
		}
	}
	return "", false
}

// events returns what has happened until now, sorted.
func (f *fleet) events() history.History { return f.past.History(f.about) }

// story returns what is known until now.
func (f *fleet) story() coexist.Story {
	h := f.events()
	f.sampler.mu.Lock()
	defer f.sampler.mu.Unlock()
	return coexist.Story{
		Terms:      coexist.Terms(h, boottime.Now()),
		Erasures:   erasures(h),
		Sightings:  append([]coexist.Sighting(nil), f.sampler.sightings...),
		Departures: append([]coexist.Departure(nil), f.sampler.departures...),
		Notice:     f.notice,
		Grain:      grain,
	}
}

// erasures reads them out of a history: what was sent has an answer, or none.
func erasures(h history.History) []coexist.Erasure {
	all := []coexist.Erasure{}
	open := map[string]int{}
	for _, e := range h.Events {
		if e.Op != opDel {
			continue
		}
		if e.Kind == history.Sent {
			open[e.Who] = len(all)
			all = append(all, coexist.Erasure{Who: e.Who, Sent: e.At, Answered: e.At + impatience, Unknown: true})
			continue
		}
		last := &all[open[e.Who]]
		last.Answered, last.Owner, last.Unknown = e.At, e.Value, e.Result == history.Unknown
	}
	return all
}

// save keeps the history of a fleet that has failed, and returns where.
func (f *fleet) save() string {
	dir := os.Getenv("ELECTION_RESULTS")
	if dir == "" {
		dir = filepath.Join(os.TempDir(), "election-interop")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err.Error()
	}
	path := filepath.Join(dir, strings.NewReplacer("/", "-", " ", "_", "'", "").Replace(f.t.Name())+".ndjson")
	if err := history.Save(path, f.events()); err != nil {
		return err.Error()
	}
	return path
}
