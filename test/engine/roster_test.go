package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/internal/views"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
)

// listed makes candidates keep a record in the roster.
func listed(o *election.Options) { o.Roster = true }

// A rosterLink has faults of its own for the safes of rosters.
type rosterLink struct {
	*kvfault.Link // to the election's safes
	members       *kvfault.Link
	Store         kv.Store // over both
}

func rosterApart(store kv.Store) rosterLink {
	others, members := kvfault.Wrap(store), kvfault.Wrap(store)
	return rosterLink{others, members, views.Over(others.Store, withMembers{apart{others.Store, members.Store, isMembers}})}
}

func isMembers(name string) bool {
	_, _, ok := kv.MemberOf(name)
	return ok
}

// withMembers is a store in which the members' safes are another's.
type withMembers struct{ apart }

func (s withMembers) Members(ctx context.Context, name string, most int) ([]kv.Held, uint64, error) {
	return s.another.(kv.Roster).Members(ctx, name, most)
}

// roster returns who is listed, as "a leader, b heir".
func (b *ballot) roster(store kv.Store) string {
	b.t.Helper()
	all, err := election.Members(context.Background(), store, b.name)
	require.NoError(b.t, err)
	return rosterText(all)
}

func rosterText(all []election.Member) string {
	var texts []string
	for _, m := range all {
		if m.Foreign {
			texts = append(texts, fmt.Sprintf("foreign %.20q", m.Value))
			continue
		}
		texts = append(texts, m.ID+" "+string(m.Role))
	}
	return strings.Join(texts, ", ")
}

func TestMembersAreListedInTheOrderInWhichTheyCameWithTheirRoles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		require.Empty(t, b.roster(store))
		began := time.Now()
		stopA := b.run(b.candidate(store, "a", listed, firstCome), "a")
		time.Sleep(ttl)
		stopB := b.run(b.candidate(store, "b", listed, byRank(3)), "b")
		time.Sleep(ttl)
		stopC := b.run(b.candidate(store, "c", listed, firstCome), "c")
		time.Sleep(ttl)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		attends := make(chan error, 1)
		go func() { attends <- b.candidate(store, "o").Attend(ctx) }()
		time.Sleep(ttl)
		require.Equal(t, "a leader, b heir, c candidate, o observer", b.roster(store))

		all, err := election.Members(t.Context(), store, b.name)
		require.NoError(t, err)
		for i, m := range all {
			require.NotZero(t, m.Number)
			require.Equal(t, "at "+m.ID, m.Value)
			require.Equal(t, map[bool]int{true: 3}[m.ID == "b"], m.Rank)
			require.WithinRange(t, m.Since, began.Truncate(time.Millisecond), time.Now())
			if i > 0 {
				require.Greater(t, m.Number, all[i-1].Number)
				require.False(t, m.Since.Before(all[i-1].Since))
			}
		}
		require.NoError(t, b.last().Proclaim(t.Context(), "elsewhere"))
		all, err = election.Members(t.Context(), store, b.name)
		require.NoError(t, err)
		require.Equal(t, "elsewhere", all[0].Value)

		_ = stopA()
		time.Sleep(ttl / 10)
		require.Equal(t, "b leader, c heir, o observer", b.roster(store))
		cancel()
		require.ErrorIs(t, <-attends, election.ErrStopped)
		require.Equal(t, "b leader, c heir", b.roster(store))
		_ = stopC()
		_ = stopB()
		require.Empty(t, b.roster(store))
	})
}

func TestALeaderWithoutARecordInTheRosterIsListedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		b.run(b.candidate(store, "a", firstCome), "a")
		time.Sleep(ttl)
		b.run(b.candidate(store, "b", firstCome), "b")
		time.Sleep(ttl)
		b.run(b.candidate(store, "c", firstCome, listed), "c")
		time.Sleep(ttl)
		require.Equal(t, "a leader, b heir, c candidate", b.roster(store))
		all, err := election.Members(t.Context(), store, b.name)
		require.NoError(t, err)
		require.Zero(t, all[0].Number)
		require.Empty(t, all[0].Safe)
		require.False(t, all[0].Since.IsZero())
	})
}

func TestTheNumberOfWhoComesLaterIsLarger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		var last uint64
		for i := range 5 {
			c := b.candidate(store, "a", listed)
			for range 2 {
				stop := b.run(c, "a")
				time.Sleep(time.Duration(i+1) * ttl)
				all, err := election.Members(t.Context(), store, b.name)
				require.NoError(t, err)
				require.Len(t, all, 1)
				require.Greater(t, all[0].Number, last)
				last = all[0].Number
				_ = stop()
			}
		}
	})
}

func TestAProcessThatDiedIsGoneFromTheRosterAfterItsTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		b.run(b.candidate(store, "a", listed), "a")
		time.Sleep(ttl)
		dies := kvfault.Wrap(store)
		b.run(b.candidate(dies.Store, "b", listed), "b")
		time.Sleep(5 * ttl)
		require.Equal(t, "a leader, b heir", b.roster(store))
		dies.On().DropRequests()
		deadline := time.Now().Add(ttl)
		for b.roster(store) != "a leader" {
			require.False(t, time.Now().After(deadline), "still there: %s", b.roster(store))
			time.Sleep(ttl / 100)
		}
		require.True(t, time.Now().After(deadline.Add(-2*ttl/3)), "it lives for its TTL")
		dies.Heal()
		time.Sleep(ttl)
		require.Equal(t, "a leader, b heir", b.roster(store), "it enters again")
	})
}

func TestARecordOfTheRosterThatIsLostIsEnteredAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		b.run(b.candidate(store, "a", listed), "a")
		time.Sleep(ttl)
		before, err := election.Members(t.Context(), store, b.name)
		require.NoError(t, err)
		store.Remove(before[0].Safe)
		all, err := election.Members(t.Context(), store, b.name)
		require.NoError(t, err)
		require.Equal(t, "a leader", rosterText(all), "it leads all the same")
		require.Zero(t, all[0].Number)
		time.Sleep(ttl)
		all, err = election.Members(t.Context(), store, b.name)
		require.NoError(t, err)
		require.Greater(t, all[0].Number, before[0].Number)
		require.Equal(t, "a", b.leaders(), "no term has ended")
	})
}

// A store may refuse for ever to say that a record is there still.
func TestARecordOfTheRosterThatIsNotConfirmedForATTLIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		link := rosterApart(store)
		b.run(b.candidate(link.Store, "a", listed), "a")
		time.Sleep(ttl)
		before, err := election.Members(t.Context(), store, b.name)
		require.NoError(t, err)
		link.members.On(kvfault.Refresh).FailReplies(errors.New("broken"))
		time.Sleep(ttl)
		all, err := election.Members(t.Context(), store, b.name)
		require.NoError(t, err)
		require.Equal(t, before, all, "it is kept for a TTL")
		time.Sleep(ttl)
		link.members.Heal()
		creates := link.members.Calls(kvfault.Create)
		require.LessOrEqual(t, creates, 3)
		time.Sleep(10 * ttl)
		all, err = election.Members(t.Context(), store, b.name)
		require.NoError(t, err)
		require.Equal(t, "a leader", rosterText(all), "the old record is removed")
		require.Greater(t, all[0].Number, before[0].Number)
		require.Equal(t, creates, link.members.Calls(kvfault.Create), "and the new one is kept")
		require.Equal(t, "a", b.leaders(), "no term has ended")
	})
}

// Whatever befalls the requests of the roster, those of the election are the same and come at
// the same times.
func TestNothingInAnElectionHeedsItsRoster(t *testing.T) {
	broken := errors.New("broken")
	var want string
	for _, trouble := range []struct {
		name string
		set  func(f kvfault.Faults)
	}{
		{"none", func(kvfault.Faults) {}},
		{"fails", func(f kvfault.Faults) { f.Fail(broken) }},
		{"refuses", func(f kvfault.Faults) { f.Fail(kv.ErrInvalid) }},
		{"is held", func(f kvfault.Faults) { f.Fail(kv.ErrHeld) }},
		{"is stale", func(f kvfault.Faults) { f.Fail(kv.ErrStale) }},
		{"has failing replies", func(f kvfault.Faults) { f.FailReplies(broken) }},
		{"loses requests", kvfault.Faults.DropRequests},
		{"loses replies", kvfault.Faults.DropReplies},
		{"is slow", func(f kvfault.Faults) { f.DelayReplies(ttl / 3) }},
		{"hangs", kvfault.Faults.Hang},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, b := memkv.New(), newBallot(t)
			began := time.Now()
			var mu sync.Mutex
			var history []string
			run := func(id string) (rosterLink, func() error) {
				link := rosterApart(store)
				trouble.set(link.members.On(kvfault.Create, kvfault.Refresh, kvfault.Delete, kvfault.Get))
				role := func(o *election.Options) {
					o.OnRole = func(r election.Role) {
						mu.Lock()
						defer mu.Unlock()
						at := time.Since(began).Round(time.Second) // pauses are drawn
						history = append(history, fmt.Sprintf("%s %v %s", id, at, r))
					}
				}
				return link, b.run(b.candidate(link.Store, id, listed, firstCome, role), id)
			}
			linkA, stopA := run("a")
			time.Sleep(2 * ttl)
			linkB, stopB := run("b")
			time.Sleep(2 * ttl)
			linkA.members.Heal()
			began2 := time.Now()
			_ = stopA()
			require.LessOrEqual(t, time.Since(began2), ttl/6+ttl/100)
			time.Sleep(2 * ttl)
			linkB.On().DropRequests() // it loses its term
			time.Sleep(2 * ttl)
			linkB.On().Heal()
			time.Sleep(2 * ttl)
			linkB.members.Heal()
			_ = stopB()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			slices.SortStableFunc(history, func(a, b string) int { return strings.Compare(a[:1], b[:1]) })
			got := strings.Join(history, "\n")
			if want == "" {
				want = got
			}
			require.Equal(t, want, got, "a roster that %s", trouble.name)
			require.Equal(t, "a b b", b.leaders())
		})
	}
}

// A release is not late for a roster that takes its time: the next leads while the record of
// the last is still to be removed.
func TestTheElectionIsReleasedBeforeTheRosterIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		link := rosterApart(store)
		stop := b.run(b.candidate(link.Store, "a", listed), "a")
		time.Sleep(ttl)
		b.run(b.candidate(store, "b"), "b")
		time.Sleep(ttl)
		link.members.On(kvfault.Delete).DropRequests()
		began := time.Now()
		stopped := make(chan error, 1)
		go func() { stopped <- stop() }()
		time.Sleep(ttl / 100)
		require.Equal(t, "a b", b.leaders())
		require.Empty(t, stopped)
		require.ErrorIs(t, <-stopped, context.Canceled)
		require.LessOrEqual(t, time.Since(began), ttl/6, "and Run does not wait for long")
		require.Equal(t, "a candidate, b leader", strings.Join(sorted(b.roster(store)), ", "))
		time.Sleep(ttl)
		require.Equal(t, "b leader", b.roster(store))
	})
}

func sorted(roster string) []string {
	all := strings.Split(roster, ", ")
	if len(all) == 2 && all[0] > all[1] {
		all[0], all[1] = all[1], all[0]
	}
	return all
}

// A create whose answer is lost is found: there is one record, and it is removed.
func TestARecordOfTheRosterWhoseCreateWasLostIsAdopted(t *testing.T) {
	for _, lose := range []func(kvfault.Faults){kvfault.Faults.DropReplies, func(f kvfault.Faults) { f.FailReplies(errors.New("broken")) }} {
		synctest.Test(t, func(t *testing.T) {
			store, b := memkv.New(), newBallot(t)
			link := rosterApart(store)
			lose(link.members.On(kvfault.Create).Next(1))
			stop := b.run(b.candidate(link.Store, "a", listed), "a")
			time.Sleep(ttl)
			require.Equal(t, 2, link.members.Calls(kvfault.Create))
			require.Equal(t, "a leader", b.roster(store))
			_ = stop()
			require.Empty(t, b.roster(store))

			lose(link.members.On(kvfault.Create))
			stop = b.run(b.candidate(link.Store, "b", listed), "b")
			synctest.Wait()
			_ = stop()
			require.Empty(t, b.roster(store), "what nobody knows of is looked for")
		})
	}
}

func TestTheLogSaysThatAnotherProcessHasTheSameID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		b.run(b.candidate(store, "a", listed), "a")
		time.Sleep(ttl)
		var log bytes.Buffer
		stop := b.run(b.candidate(store, "a", listed, func(o *election.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) }), "a")
		time.Sleep(ttl)
		require.Equal(t, "a leader, a heir", b.roster(store))
		_ = stop()
		require.Equal(t, 1, strings.Count(log.String(), "event=roster_same_id"), log.String())
		log.Reset()
		stop = b.run(b.candidate(store, "c", listed, func(o *election.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) }), "c")
		time.Sleep(ttl)
		_ = stop()
		require.NotContains(t, log.String(), "roster_same_id")
	})
}

func TestWhatSomebodyElseHasPutIntoARosterIsReportedAndLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		b.run(b.candidate(store, "a", listed), "a")
		time.Sleep(ttl)
		text := func(signature, value, note string) string {
			return kv.Encode(kv.Record{Signature: signature, Value: value, Note: note, TTL: ttl, Token: 7, Revision: 7})
		}
		hostile := map[string]string{
			"1":                                 "plain",
			"2":                                 "\xff\x00\x1b[31m",
			"3":                                 strings.Repeat("x", 1<<20),
			"4":                                 text("x/5", "", "{}"),
			"6":                                 text("x\x1b[2J/6", "", "{}"),
			"7":                                 text("/7", "", "{}"),
			"8":                                 text(strings.Repeat("x", 513)+"/8", "", "{}"),
			"9":                                 text("x/9", strings.Repeat("v", 64<<10+1), "{}"),
			"10":                                text("x/10", "", "[]"),
			"no key":                            text("x/no key", "", "{}"),
			"\xff" + strings.Repeat("k", 1<<16): "long",
		}
		for key, value := range hostile {
			store.Put(kv.MemberName(b.name, key), value)
		}
		store.Put(kv.MemberName(b.name, "11"), text("late/11", "", `{"since":9223372036854775807,"rank":-4}`))
		all, err := election.Members(t.Context(), store, b.name)
		require.NoError(t, err)
		require.Len(t, all, len(hostile)+2)
		for i, m := range all {
			switch i {
			case 0, 1:
				require.False(t, m.Foreign)
				require.True(t, m.ID == "a" || m.ID == "late" && m.Since.IsZero())
			default:
				require.True(t, m.Foreign)
				require.Empty(t, m.ID)
				require.Empty(t, m.Role)
				require.LessOrEqual(t, len(m.Value), 1<<10)
				require.LessOrEqual(t, len(m.Safe), 4<<10)
			}
		}
		time.Sleep(5 * ttl)
		for key, value := range hostile {
			rec, err := store.Get(t.Context(), kv.MemberName(b.name, key))
			require.NoError(t, err)
			if rec.Foreign {
				require.Equal(t, value, rec.Value)
			}
		}
		require.Equal(t, "a", b.leaders())
	})
}

func TestARosterOfTenThousandIsListedAndAnEndlessOneIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		put := func(from, to int) {
			for i := from; i < to; i++ {
				key := fmt.Sprint("k", i)
				_, err := store.Create(t.Context(), kv.MemberName(b.name, key), kv.Record{Signature: "x/" + key, Note: "{}", TTL: time.Hour})
				require.NoError(t, err)
			}
		}
		put(0, 10_000)
		all, err := election.Members(t.Context(), store, b.name)
		require.NoError(t, err)
		require.Len(t, all, 10_000)
		put(10_000, 16_385)
		_, err = election.Members(t.Context(), store, b.name)
		require.ErrorContains(t, err, "more than 16384 records")
		for _, err := range election.WatchMembers(t.Context(), store, b.name) {
			require.ErrorContains(t, err, "more than 16384 records")
			break
		}
	})
}

func TestAReaderOfTheRosterMayPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), ttl)
		defer cancel()
		require.PanicsWithValue(t, "enough", func() {
			for range election.WatchMembers(ctx, memkv.New(), "billing") {
				panic("enough")
			}
		})
		require.NoError(t, ctx.Err(), "it does not wait for the end of its context")
	})
}

func TestAWatchOfTheRosterTellsOfEachChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		ctx, cancel := context.WithCancel(t.Context())
		seen := make(chan string, 100)
		go func() {
			defer close(seen)
			for all, err := range election.WatchMembers(ctx, store, b.name) {
				if err != nil {
					seen <- err.Error()
					continue
				}
				seen <- rosterText(all)
			}
		}()
		sees := func(want string) {
			t.Helper()
			deadline := time.After(ttl / 10)
			for {
				select {
				case got := <-seen:
					if got == want {
						return
					}
				case <-deadline:
					require.FailNow(t, "not seen", want)
				}
			}
		}
		sees("")
		stopA := b.run(b.candidate(store, "a", listed), "a")
		sees("a leader")
		dies := kvfault.Wrap(store)
		b.run(b.candidate(dies.Store, "b", listed), "b")
		sees("a leader, b heir")
		b.run(b.candidate(store, "c", listed), "c")
		sees("a leader, b heir, c candidate")
		time.Sleep(10 * ttl)
		require.Empty(t, seen, "refreshes are no changes")
		dies.On().DropRequests()
		time.Sleep(ttl)
		sees("a leader, c heir")
		_ = stopA()
		sees("c leader")
		cancel()
		for last := range seen {
			require.Contains(t, last, "context canceled")
		}
	})
}

func TestAWatchOfTheRosterOutlastsTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		link := kvfault.Wrap(store)
		b.run(b.candidate(store, "a", listed), "a")
		time.Sleep(ttl)
		link.On().Fail(errors.New("broken"))
		time.AfterFunc(10*ttl, link.Heal)
		troubles := 0
		for all, err := range election.WatchMembers(t.Context(), link.Store, b.name) {
			if err == nil {
				require.Equal(t, "a leader", rosterText(all))
				break
			}
			require.ErrorContains(t, err, "broken")
			troubles++
		}
		require.Less(t, troubles, 10*int(ttl/time.Second)*2)
		require.Greater(t, troubles, 10)
		require.Less(t, link.Calls(kvfault.Get)+link.Calls(kvfault.Watch), 1000)
	})
}

func TestACandidateWithATermOfItsOwnLeavesTheRosterWhenItResigns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		c := b.candidate(store, "a", listed)
		term, err := c.Campaign(t.Context())
		require.NoError(t, err)
		time.Sleep(3 * ttl)
		require.Equal(t, "a leader", b.roster(store))
		other := b.candidate(store, "b", listed)
		ctx, cancel := context.WithTimeout(t.Context(), ttl)
		defer cancel()
		_, err = other.Campaign(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, "a leader", b.roster(store))
		_, err = other.TryCampaign(t.Context())
		require.ErrorIs(t, err, election.ErrHeld)
		require.NoError(t, term.Resign(t.Context()))
		require.Empty(t, b.roster(store))
		require.NoError(t, term.Resign(t.Context()), "once more")
		term, err = other.TryCampaign(t.Context())
		require.NoError(t, err)
		time.Sleep(ttl)
		all, err := election.Members(t.Context(), store, b.name)
		require.NoError(t, err)
		require.Zero(t, all[0].Number, "a single attempt keeps no record")
		require.NoError(t, term.Resign(t.Context()))
	})
}

func TestAStoreWithoutRostersSaysSo(t *testing.T) {
	store := struct{ kv.Store }{memkv.New()}
	_, err := election.New(store, "billing", &election.Options{Roster: true})
	require.ErrorContains(t, err, "keeps no roster")
	require.ErrorContains(t, err, "etcd, Consul, Redis")
	_, err = election.Members(t.Context(), store, "billing")
	require.ErrorContains(t, err, "keeps no roster")
	for _, err := range election.WatchMembers(t.Context(), store, "billing") {
		require.ErrorContains(t, err, "keeps no roster")
	}
	c, err := election.New(store, "billing", nil)
	require.NoError(t, err)
	require.ErrorContains(t, c.Attend(t.Context()), "keeps no roster")
	_, err = election.New(memkv.New(), kv.MemberName("billing", "a"), nil)
	require.ErrorContains(t, err, ":roster:")
	_, err = election.Members(t.Context(), memkv.New(), "billing:heir")
	require.Error(t, err)
}

// Anybody may write a record whose key has no hyphen, as the signatures of candidates have none
// that keep no roster.
func TestARecordInTheRosterTakesNoRoleOfAnotherCandidate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		b.run(b.candidate(store, "a", firstCome), "a")
		time.Sleep(ttl)
		b.run(b.candidate(store, "b", firstCome), "b")
		time.Sleep(ttl)
		name := kv.MemberName(b.name, "x")
		_, err := store.Create(t.Context(), name, kv.Record{Signature: "mallory/x", Note: "{}", TTL: 100 * ttl})
		require.NoError(t, err)
		require.Equal(t, "a leader, b heir, mallory candidate", b.roster(store))
	})
}

// Of an election "a:roster" the heir would stand where a member of "a" does.
func TestANameThatEndsLikeARosterIsReserved(t *testing.T) {
	store := memkv.New()
	for _, name := range []string{"a:roster", "a:roster:b", "a:roster:"} {
		_, err := election.New(store, name, &election.Options{ID: "a", TTL: ttl})
		require.ErrorContains(t, err, `":roster`, name)
		_, err = election.Members(t.Context(), store, name)
		require.ErrorContains(t, err, `":roster`, name)
	}
	_, err := election.New(store, "roster", &election.Options{ID: "a", TTL: ttl})
	require.NoError(t, err)
}
