//go:build unix

package succession_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
)

// A crowd's candidates have a TTL so long that nobody refreshes anything while it
// is looked at, but for the one that is to crash.
const (
	lasting = 5 * time.Minute
	crashes = 6 * time.Second
)

// large is a crowd that wants a machine to itself.
const large = 1000

// clients is how many clients of a server a crowd shares.
const clients = 4

// What a handover may take at most, whatever the store and the number of
// candidates: requests and writes until the next leader's term, and then claims
// for the heir's safe of each candidate, and writes of a claim that is refused in a
// race (to take and to give back what backs it, and the claim).
const (
	mostRequests = 32
	mostWrites   = 8
	claimsEach   = 4
	writesClaim  = 3
)

// A cost is what a handover took, up to the beginning of the next term or after
// it.
type cost struct {
	told  []string // the candidates whose watches yielded something
	asked []string // the candidates that sent anything
	sent  int      // requests at the server
	wrote int      // those of them that write
	tally tally    // all of them, by sort
}

// A handover is a row of the table.
type handover struct {
	store, event string
	candidates   int
	path, after  cost
	claims       int // creates sent for the heir's safe; without a succession, for the leader's
}

func (h handover) String() string {
	return fmt.Sprintf("| %-6s | %10d | %-26s | %5d | %5d | %8d | %6d | %9d | %6d | %8d | %6d |",
		h.store, h.candidates, h.event,
		len(h.path.told), len(h.path.asked), h.path.sent, h.path.wrote,
		len(h.after.told), h.claims, h.after.sent, h.after.wrote)
}

const heading = `
Until the next leader's term: how many candidates were told anything by a watch,
how many asked for anything, and the requests at the server, writes among them.
Then, until all is quiet again: how many were told, the claims for the place of the
heir (without a succession: of the leader, from the beginning), requests, writes.

| store  | candidates | the leader                 |  told | asked | requests | writes | then told | claims | requests | writes |
|--------|-----------:|----------------------------|------:|------:|---------:|-------:|----------:|-------:|---------:|-------:|`

// A handover wakes one candidate, the heir, and costs the same however many there
// are. Then the others compete for the heir's place.
func TestRequestsOfAHandoverAreTheSameForTwoAndForAThousand(t *testing.T) {
	var mu, alone sync.Mutex
	table := []handover{}
	t.Run("on", func(t *testing.T) {
		for name, server := range countedServers() {
			for _, n := range []int{2, 100, large} {
				t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) {
					t.Parallel() // it mostly waits
					if n == large {
						alone.Lock()
						defer alone.Unlock()
					}
					counted := server(t)
					rows := append(withoutHeir(t, counted, n), withHeir(t, counted, n)...)
					mu.Lock()
					defer mu.Unlock()
					table = append(table, rows...)
				})
			}
		}
	})
	slices.SortStableFunc(table, func(a, b handover) int {
		return cmp.Or(strings.Compare(a.store, b.store), cmp.Compare(a.candidates, b.candidates))
	})
	text := heading
	for _, row := range table {
		text += "\n" + row.String()
	}
	t.Log(text)
	for _, row := range table {
		t.Logf("%s, %d, %s\n  until the next term: %v\n  afterwards: %v", row.store, row.candidates, row.event, row.path.tally, row.after.tally)
	}
}

// A crowd is a fleet whose requests its server counts.
type crowd struct {
	*fleet
	counted
	size int
}

// newCrowd has n candidates stand. The first leads, and is the one that may
// crash.
func newCrowd(t testing.TB, c counted, n int, o election.Options) (f *crowd, first *member, term *election.Term) {
	t.Helper()
	f = &crowd{fleet: newFleet(t, func() link { return faulty(c.dial()) }), counted: c, size: n}
	short := o
	if !o.NoHeir {
		short.TTL = crashes
	}
	first = f.enter("candidate 1", short)
	_, term = f.leads(0, patience)
	shared := [clients]link{}
	for i := range shared {
		shared[i] = link{store: c.dial()}
	}
	f.enterBy(shared[0], "candidate 2", o)
	if !o.NoHeir {
		f.isHeir(patience)
	}
	for i := 3; i <= n; i++ {
		f.enterBy(shared[i%clients], fmt.Sprintf("candidate %d", i), o)
	}
	f.eventually("all watch", func() bool { return len(of(f.book.since(0, tells))) == n })
	f.quiet()
	return f, first, term
}

// tells matches what watches yield.
func tells(e entry) bool { return e.op == told }

func (f *crowd) eventually(what string, is func() bool) {
	f.t.Helper()
	require.Eventually(f.t, is, patience, 200*time.Millisecond, what)
}

// quiet waits until the server has got no request for six looks in a row, a second at least, in
// which this process did not stand still. Leaders and heirs with a short TTL never rest: what
// they send is not waited for.
func (f *crowd) quiet() {
	f.t.Helper()
	lines := func() int { return f.book.count(func(e entry) bool { return e.op != refresh }) }
	last, counts, looks := lines(), f.counts(), 0
	f.eventually("all is quiet", func() bool {
		looks++
		if n, now := lines(), f.counts(); n != last || f.many(now.less(counts)) {
			last, counts, looks = n, now, 0
		}
		return looks == 6
	})
}

// many reports whether more was sent than by a candidate that refreshes.
func (f *crowd) many(t tally) bool { return f.sent(t) > 8 }

// cost returns what has been written down since a page, and counted by the
// server since then, but for what the candidate called gone wrote down.
func (f *crowd) cost(page int, before tally, gone string) cost {
	counted := f.counts().less(before)
	return cost{
		told:  of(f.book.since(page, func(e entry) bool { return !asks(e) && e.who != gone })),
		asked: of(f.book.since(page, func(e entry) bool { return asks(e) && e.who != gone })),
		sent:  f.sent(counted),
		wrote: counted.of(f.writes...),
		tally: counted,
	}
}

// claims returns how many creates have been sent for a safe since a page.
func (f *crowd) claims(page int, safe string) int {
	return len(f.book.since(page, func(e entry) bool { return e.op == create && e.safe == safe }))
}

// withoutHeir is what it costs if all watch the leader: the measure of the
// others, and of those who measure.
func withoutHeir(t testing.TB, c counted, n int) []handover {
	t.Helper()
	f, _, term := newCrowd(t, c, n, election.Options{TTL: lasting, NoHeir: true})
	page, before := f.book.page(), f.counts()
	require.NoError(t, term.Resign(t.Context()))
	f.leads(term.Token(), patience)
	row := handover{store: c.name, candidates: n, event: "resigns, no heir", path: f.cost(page, before, "")}
	rest, then := f.book.page(), f.counts()
	f.quiet()
	row.after, row.claims = f.cost(rest, then, ""), f.claims(page, leaders)
	f.leave(f.present()...)
	require.GreaterOrEqual(t, len(of(f.book.since(page, tells))), n-1, "each that waits is told")
	return []handover{row}
}

// withHeir is what it costs with one: first the leader crashes, then the
// next one resigns.
func withHeir(t testing.TB, c counted, n int) []handover {
	t.Helper()
	f, first, term := newCrowd(t, c, n, election.Options{TTL: lasting})
	first.link.hush()
	crash, term := f.hands(term, first, "crashes", func() {})
	if n == 2 { // somebody has to be heir
		first.link.heal()
		f.isHeir(patience)
		f.quiet()
	} else {
		f.leave(first) // it asks now and then, whoever hands over
	}
	resign, _ := f.hands(term, nil, "resigns", func() { require.NoError(t, term.Resign(t.Context())) })
	f.leave(f.present()...)
	return []handover{crash, resign}
}

// hands counts what a handover costs that is brought about by end, and begins a
// row. The one who is gone reaches the server no more.
func (f *crowd) hands(term *election.Term, gone *member, event string, end func()) (handover, *election.Term) {
	f.t.Helper()
	leader, _ := f.leads(term.Token()-1, patience)
	heir, lost := f.isHeir(patience), ""
	if gone != nil {
		lost = gone.id
	}
	// The heir that leads gives its safe up: that is when the others come into it.
	open := f.book.hold(func(e entry) bool { return e.safe == heirs && e.op == remove })
	defer open()
	page, before := f.book.page(), f.counts()
	end()
	next, term := f.leads(term.Token(), patience)
	row := handover{store: f.counted.name, candidates: f.size, event: event, path: f.cost(page, before, lost)}
	require.Equal(f.t, heir.id, next.id)
	two := []string{leader.id, heir.id}
	require.Subset(f.t, two, row.path.asked, "who asked the store for anything until then")
	require.Subset(f.t, two, row.path.told, "who was told of anything until then")
	require.LessOrEqual(f.t, row.path.wrote, mostWrites, "%v", row.path.tally)
	sent := row.path.sent
	if gone != nil { // it takes a while until the record has faded
		sent -= row.path.tally.of(f.polls...)
	}
	require.LessOrEqual(f.t, sent, mostRequests, "%v", row.path.tally)

	rest, then := f.book.page(), f.counts()
	open()
	if f.size > 2 || gone == nil {
		f.isHeir(patience)
	}
	f.quiet()
	row.after, row.claims = f.cost(rest, then, lost), f.claims(rest, heirs)
	require.LessOrEqual(f.t, row.claims, claimsEach*f.size, "claims for the heir's safe")
	require.LessOrEqual(f.t, row.after.wrote, writesClaim*row.claims+mostWrites, "%v", row.after.tally)
	return row, term
}
