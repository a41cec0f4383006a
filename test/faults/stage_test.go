//go:build linux

package faults

import (
	"crypto/rand"
	"database/sql"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	sqlkv "github.com/electkv/election/backends/sql"
	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/internal/witness"
	"github.com/electkv/election/kv"
)

// A stage is where one row is played on one store: with servers, a name of its
// own in them, a fence, and candidates that reach the servers by links of their
// own. Its methods fail the test if they cannot do what they say. They note what
// is done right before it is done.
type stage struct {
	t   testing.TB
	row row
	col column

	*servers
	name  string // of the election
	ttl   time.Duration
	life  kv.Lifetime // of a record with that TTL
	store kv.Store    // reached directly
	fence *fence
	cast  map[string]*actor
	names []string // of the cast, in the order of their appearance

	pool    *sql.DB // of the stage's own, where there is a database
	dialect sqlkv.Dialect

	network *testenv.Network         // nil unless candidates run on hosts of their own
	homes   map[string]*testenv.Host // of candidates

	about history.About
	told  witness.Chronicle // all but what is many, and not waited for: traces of campaigns, answers over HTTP
	whole witness.Chronicle // with these
	seen  int               // how many events have been awaited

	mu       sync.Mutex
	troubles []string // what was wrong with the ends of processes
}

// newStage sets a stage, without candidates.
func newStage(t testing.TB, c column, r row, common func() *servers) *stage {
	t.Helper()
	s := &stage{t: t, row: r, col: c, ttl: r.ttl(c), cast: map[string]*actor{}}
	switch {
	case r.servers != nil:
		s.servers = r.servers(t, c)
	case r.own || c.common == nil:
		s.servers = c.start(t)
	default:
		s.servers = common()
	}
	s.name = fmt.Sprintf("faults-%s-%s", r.id(), strings.ToLower(rand.Text()[:8]))
	s.fence = newFence(t, s.note)
	if s.inTable() {
		s.makeTable()
	}
	s.store = s.open()
	var err error
	s.life, err = s.store.Lifetime(s.ttl)
	require.NoError(t, err)
	s.about = history.About{
		Title:    fmt.Sprintf("%s: %s %s", c.name, r.id(), r.fault),
		Command:  fmt.Sprintf("go test ./test/faults -faults.full -faults.seed=%d -run '^%s$'", *seed, t.Name()),
		Seed:     *seed,
		TTL:      s.ttl,
		Margin:   s.ttl / 10,
		Life:     s.life.Max,
		Slack:    s.slack(s.takeover()),
		Scrape:   scrapeEach(s.ttl),
		Requests: usual,
	}
	if r.requests > 0 {
		s.about.Requests = r.requests
	}
	return s
}

// open opens the store for the stage itself.
func (s *stage) open() kv.Store {
	store, closeStore, err := open(s.director())
	require.NoError(s.t, err)
	s.t.Cleanup(closeStore)
	return store
}

// director is the part of the stage itself, which uses no links.
func (s *stage) director() part {
	p := part{Who: []string{"director"}, Store: s.col.kind, Observed: s.col.observed, Addrs: s.addrs, Database: s.database, Peers: s.peers, Name: s.name, TTL: s.ttl, Fence: s.fence.path, Bug: s.row.bug}
	if s.row.part != nil {
		s.row.part(&p)
	}
	return p
}

// slack is how much later than after x something may be on a busy machine.
func (s *stage) slack(x time.Duration) time.Duration { return x/5 + 500*time.Millisecond }

// takeover is within what time after its last sign of life a leader is replaced:
// the store's part, and the candidates' hesitation.
func (s *stage) takeover() time.Duration { return s.life.Max + 250*time.Millisecond }

// crash is the same for a leader that is killed.
func (s *stage) crash() time.Duration {
	if s.col.crash > 0 {
		return s.col.crash
	}
	return s.takeover()
}

// release is within what time a leader that resigns is replaced.
func (s *stage) release() time.Duration { return 500 * time.Millisecond }

// note takes an event into the history.
func (s *stage) note(e history.Event) {
	if e.At == 0 {
		e.At = boottime.Now()
	}
	s.whole.Note(e)
	if e.Trace == nil && e.Kind != history.Said && e.Kind != history.Scraped {
		s.told.Note(e)
	}
}

// traced returns what has happened until now, with all of it, sorted.
func (s *stage) traced() history.History { return s.whole.History(s.about) }

// events returns what has happened until now, sorted, without what is not waited for.
func (s *stage) events() history.History { return s.told.History(s.about) }

// enter starts candidates by the given names, each in a process with links of
// its own.
func (s *stage) enter(names ...string) {
	s.t.Helper()
	for _, who := range names {
		s.start(s.partOf(len(s.names), who))
	}
}

// partOf is what candidate number i is told.
func (s *stage) partOf(i int, who ...string) part {
	p := s.director()
	p.Who, p.Addrs, p.Links = who, s.of(s.col.kind, i), map[string]string{}
	p.Asked = s.row.asked == nil || s.row.asked(who[0])
	for n := 1; n < p.crowd; n++ {
		p.Who = append(p.Who, fmt.Sprintf("%s-%d", who[0], n))
	}
	return p
}

// start starts a process with a part, by links of its own. A candidate that
// appeared before keeps its links.
func (s *stage) start(p part) *actor {
	s.t.Helper()
	who := p.Who[0]
	var links []*testenv.Proxy
	if before, ok := s.cast[who]; ok {
		links, p.Links = before.links, before.part.Links
	} else {
		for _, addr := range s.all {
			if p.Links[addr] != "" { // it is led elsewhere
				continue
			}
			proxy := testenv.NewProxy(s.t, addr)
			links, p.Links[addr] = append(links, proxy), proxy.Addr()
		}
		s.names = append(s.names, who)
	}
	a, err := newActor(p, s.note, func(cmd *exec.Cmd) {
		if s.row.prepare != nil {
			s.row.prepare(s, who, cmd)
		}
	})
	require.NoError(s.t, err)
	a.links = links
	s.cast[who] = a
	return a
}

// again starts the process of a candidate that has ended.
func (s *stage) again(who string) {
	s.t.Helper()
	old := s.actor(who)
	s.trouble(old.end(patience))
	s.start(old.part)
}

func (s *stage) actor(who string) *actor {
	s.t.Helper()
	a, ok := s.cast[who]
	require.True(s.t, ok, "%s is not on the stage", who)
	return a
}

// others returns the candidates but for some.
func (s *stage) others(not ...string) []string {
	rest := []string{}
	for _, who := range s.names {
		if !slices.Contains(not, who) {
			rest = append(rest, who)
		}
	}
	return rest
}

func (s *stage) trouble(err error) {
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.troubles = append(s.troubles, err.Error())
	}
}
