package kvtest

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

const (
	listsMembers  = "Members returns the live records of the roster called name, each with the name of its safe. A record is in it if its Create has returned before the call and it lives until the end of the call, and is not if it was gone before the call."
	atMost        = "If there are more than most, Members returns no more than most of them."
	growsInRoster = "A new record gets a token that is larger than that of every earlier record of the same roster, whichever member's it was, across deletes, expiries and restarts."
	sameAsOthers  = "The safes of members are safes like any other."
	foreignMember = "A record that this library did not write is reported as foreign, and left alone."
	awaits        = "AwaitMembers returns nil when the roster may have changed since Members has returned version. A refresh is not a change."
)

// The cases of a kv.Roster. A store that is none skips them.
var rosterCases = []Case{
	{Name: "a roster lists its members", Clause: listsMembers, check: listed(aRosterListsItsMembers)},
	{Name: "a roster that nobody has entered is empty", Clause: listsMembers, check: listed(aRosterThatNobodyHasEnteredIsEmpty)},
	{Name: "a roster does not list members that have left", Clause: listsMembers, check: listed(aRosterDoesNotListWhoHasLeft)},
	{Name: "a member that is not refreshed fades from its roster, in time and not early", Clause: listsMembers + " " + neverEarly, check: listed(aMemberFadesFromItsRoster)},
	{Name: "a member that is refreshed stays in its roster", Clause: sameAsOthers, check: listed(aMemberThatIsRefreshedStays), long: true},
	{Name: "members that share a lease stay in the roster, each for itself", Clause: sameAsOthers, check: listed(membersThatShareALease), long: true},
	{Name: "rosters of other names are kept apart", Clause: listsMembers, check: listed(rostersAreKeptApart)},
	{Name: "what is beside a roster is not listed", Clause: listsMembers, check: listed(whatIsBesideARosterIsNotListed)},
	{Name: "tokens grow across all members of a roster", Clause: growsInRoster, check: listed(tokensGrowAcrossMembers)},
	{Name: "tokens grow after all members of a roster are gone", Clause: growsInRoster, check: listed(tokensGrowAfterAllAreGone)},
	{Name: "members that enter at once have tokens of their own", Clause: growsInRoster, check: listed(membersThatEnterAtOnce)},
	{Name: "a member's values come back from its roster", Clause: listsMembers, check: listed(aMembersValuesComeBack)},
	{Name: "a roster reports what somebody else has put there, and leaves it alone", Clause: foreignMember, check: listed(aRosterReportsWhatSomebodyElseHasPut), needs: putAndRemove},
	{Name: "a roster lists no more than it is asked for", Clause: atMost, check: listed(aRosterListsNoMoreThanItIsAskedFor)},
	{Name: "a roster of many is listed whole", Clause: listsMembers, check: listed(aRosterOfManyIsListedWhole), long: true},
	{Name: "a wait for a change of a roster hears of it", Clause: awaits, check: listed(whoWaitsForAChangeHearsOfIt)},
	{Name: "a wait for a change of a roster hears of one that came before", Clause: awaits, check: listed(whoWaitsHearsOfAChangeBefore)},
	{Name: "a wait for a change of a roster hears that a record has faded", Clause: awaits, check: listed(whoWaitsHearsThatARecordHasFaded)},
	{Name: "a roster's operations whose context has ended return promptly", Clause: contextBounds, check: listed(aRostersOperationsReturnPromptly)},
	{Name: "a roster needs a name", Clause: invalid, check: listed(aRosterNeedsAName)},
}

// A rota is a roster under test.
type rota struct {
	*trial
	store  kv.Roster // another client than those that write
	roster string
}

// listed makes a check of one that needs a store which keeps rosters.
func listed(check func(*rota)) func(*trial) {
	return func(t *trial) {
		if _, ok := t.s.(kv.Roster); !ok {
			t.Skip("the store keeps no rosters")
		}
		check(t.rota())
	}
}

func (t *trial) rota() *rota {
	return &rota{t, t.open().(kv.Roster), "kvtest-" + rand.Text()} //nolint:forcetypeassert // it was looked at
}

// place returns the name of a member's safe that nobody has used before.
func (r *rota) place() string {
	name := kv.MemberName(r.roster, rand.Text()[:20]+"-1")
	r.cleanLater(name)
	return name
}

// enters creates a member's record.
func (r *rota) enters(s kv.Store, rec kv.Record) kv.Held {
	r.Helper()
	name := r.place()
	return kv.Held{Name: name, Record: r.create(s, name, rec)}
}

func (r *rota) list() (all []kv.Held, version uint64) {
	r.Helper()
	all, version, err := r.store.Members(r.ctx, r.roster, 10_000)
	require.NoError(r, err, "members of %q", r.roster)
	return all, version
}

// shows requires that the roster has exactly these records.
func (r *rota) shows(want ...kv.Held) {
	r.Helper()
	got, _ := r.list()
	require.ElementsMatch(r, want, got)
}

func aRosterListsItsMembers(r *rota) {
	one := r.enters(r.s, r.signed("a"))
	r.shows(one)
	two, three := r.enters(r.open(), r.signed("b")), r.enters(r.s, r.signed("c"))
	r.shows(one, two, three)
}

func aRosterThatNobodyHasEnteredIsEmpty(r *rota) { r.shows() }

func aRosterDoesNotListWhoHasLeft(r *rota) {
	one, two := r.enters(r.s, r.signed("a")), r.enters(r.open(), r.signed("b"))
	r.delete(r.s, one.Name, one.Record)
	r.shows(two)
	r.disowned(r.s, one.Name, one.Record)
	r.shows(two)
}

func rostersAreKeptApart(r *rota) {
	one := r.enters(r.s, r.signed("a"))
	for _, name := range []string{r.roster[:len(r.roster)-1], r.roster + "x", r.roster + ":heir", kv.MemberName(r.roster, "x")} {
		other := &rota{r.trial, r.store, name}
		other.shows()
		two := other.enters(r.s, r.signed("b"))
		other.shows(two)
		r.shows(one)
	}
}

func whatIsBesideARosterIsNotListed(r *rota) {
	one := r.enters(r.s, r.signed("a"))
	for _, name := range []string{r.roster, r.roster + ":heir", r.roster + ":roster", r.roster + ":rosters:a"} {
		r.cleanLater(name)
		r.create(r.s, name, r.signed("beside"))
	}
	r.shows(one)
}

func tokensGrowAcrossMembers(r *rota) {
	clients := []kv.Store{r.s, r.open()}
	var last kv.Held
	for i := range 12 {
		next := r.enters(clients[i%2], r.signed("v"))
		require.Greater(r, next.Record.Token, last.Record.Token)
		if i%3 == 0 {
			r.delete(r.s, next.Name, next.Record)
		}
		last = next
	}
}

func tokensGrowAfterAllAreGone(r *rota) {
	one := r.enters(r.s, r.signed("a"))
	start := time.Now()
	two := r.enters(r.s, r.mortal("b"))
	r.delete(r.s, one.Name, one.Record)
	r.fades(two.Name, two.Record, start, nil)
	r.shows()
	three := r.enters(r.open(), r.signed("c"))
	require.Greater(r, three.Record.Token, max(one.Record.Token, two.Record.Token))
}

func membersThatEnterAtOnce(r *rota) {
	const crowd = 24
	came := make(chan kv.Record, crowd)
	for range crowd {
		name := r.place()
		go func() {
			rec, err := r.s.Create(r.ctx, name, r.signed("v"))
			if err != nil {
				rec = kv.Record{Value: err.Error()}
			}
			came <- rec
		}()
	}
	var tokens []uint64
	for range crowd {
		rec := <-came
		require.NotZero(r, rec.Token, rec.Value)
		tokens = append(tokens, rec.Token)
	}
	slices.Sort(tokens)
	require.Len(r, slices.Compact(tokens), crowd)
	all, _ := r.list()
	require.Len(r, all, crowd)
}

func aMembersValuesComeBack(r *rota) {
	rec := r.signed("\x00\xff\n<\u2028>" + string(make([]byte, 4<<10)))
	rec.Note = `{"rank":7}`
	r.shows(r.enters(r.s, rec))
}

func aRosterReportsWhatSomebodyElseHasPut(r *rota) {
	one := r.enters(r.s, r.signed("a"))
	name := r.enters(r.open(), r.signed("b")).Name
	long := string(slices.Repeat([]byte("x"), 64<<10))
	for _, value := range []string{"host-7", "", "\x00\xff", long} {
		r.b.Put(r, name, value)
		all, _ := r.list()
		require.Len(r, all, 2)
		require.Contains(r, all, one)
		for _, got := range all {
			if got.Name == name {
				require.True(r, got.Record.Foreign)
				require.Empty(r, got.Record.Signature)
				require.GreaterOrEqual(r, len(got.Record.Value), min(len(value), 256))
				require.Equal(r, value[:len(got.Record.Value)], got.Record.Value)
			}
		}
	}
	r.b.Put(r, name, "host-7")
	two := r.enters(r.s, r.signed("c"))
	r.list()
	r.unharmed(name, "host-7")
	r.b.Remove(r, name)
	r.shows(one, two)
}

func aRosterListsNoMoreThanItIsAskedFor(r *rota) {
	for range 5 {
		r.enters(r.s, r.signed("v"))
	}
	for most := range 7 {
		all, _, err := r.store.Members(r.ctx, r.roster, most)
		require.NoError(r, err)
		require.Len(r, all, min(most, 5))
	}
}

// More than the stores read at once.
func aRosterOfManyIsListedWhole(r *rota) {
	const many, lanes = 600, 20
	came := make(chan kv.Held, many)
	for range lanes {
		go func() {
			for range many / lanes {
				name := kv.MemberName(r.roster, rand.Text()[:20])
				rec := r.signed("v")
				rec.Shared = true
				rec, err := r.s.Create(r.ctx, name, rec)
				if err != nil {
					rec.Value = err.Error()
				}
				came <- kv.Held{Name: name, Record: rec}
			}
		}()
	}
	var want []kv.Held
	for range many {
		one := <-came
		require.NotZero(r, one.Record.Token, one.Record.Value)
		want = append(want, one)
	}
	r.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		var all sync.WaitGroup
		for lane := range slices.Chunk(want, many/lanes) {
			all.Go(func() {
				for _, one := range lane {
					_ = r.s.Delete(ctx, one.Name, one.Record)
				}
			})
		}
		all.Wait()
	})
	got, _ := r.list()
	require.Len(r, got, many)
	byName := func(a, b kv.Held) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(got, byName)
	slices.SortFunc(want, byName)
	for i := range want {
		require.Equal(r, want[i], got[i])
	}
}

func aRosterNeedsAName(r *rota) {
	_, _, err := r.store.Members(r.ctx, "", 10)
	require.ErrorIs(r, err, kv.ErrInvalid)
	require.ErrorIs(r, r.store.AwaitMembers(r.ctx, "", 0), kv.ErrInvalid)
}
