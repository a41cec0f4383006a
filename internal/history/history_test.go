package history_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	memkv "github.com/electkv/election/backends/mem"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/views"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
)

func at(ms int, who string, kind history.Kind, token uint64, until int) history.Event {
	return history.Event{At: time.Duration(ms) * time.Millisecond, Who: who, Kind: kind, Token: token, Until: time.Duration(until) * time.Millisecond}
}

// played: a is killed at 1000, b is asleep from 2000 to 6000, c leads from 4800.
func played() history.History {
	return history.History{Events: []history.Event{
		at(0, "a", history.Ready, 0, 0), at(0, "b", history.Ready, 0, 0), at(0, "c", history.Ready, 0, 0),
		at(10, "a", history.Elected, 1, 2700),
		at(900, "a", history.Extended, 1, 3600),
		at(990, "a", history.Worked, 1, 0),
		at(1000, "a", history.Killed, 0, 0),
		at(1050, "b", history.Elected, 2, 3700),
		at(1900, "b", history.Extended, 2, 4600),
		at(2000, "b", history.Stopped, 0, 0),
		at(4800, "c", history.Elected, 3, 7500),
		at(6000, "b", history.Woken, 0, 0),
		at(6001, "b", history.Ended, 2, 0),
		at(7100, "c", history.Ended, 3, 0),
	}}
}

func TestTheTimelineShowsWhoLedWhenAndWhatWasDoneToThem(t *testing.T) {
	require.Equal(t, ""+
		"a       1███████K\n"+
		"b       ·········2███████S███████████████████████zzzzzzzzzzzzC··········\n"+
		"c       ··········································3█████████████████████\n"+
		"leader  1████████2███████████████████████████████ 3█████████████████████\n"+
		"        ┬───────┬────────┬────────┬────────┬────────┬────────┬────────┬─\n"+
		"        0s      1s       2s       3s       4s       5s       6s       7s\n",
		history.Timeline(played(), 72))
}

func TestTheTimelineShowsWhoIsHeirAndWhoIsAskedToGiveWay(t *testing.T) {
	heir := func(ms int, who, role string) history.Event {
		e := at(ms, who, history.Became, 0, 0)
		e.Value = role
		return e
	}
	h := history.History{Events: []history.Event{
		at(0, "a", history.Ready, 0, 0), at(0, "b", history.Ready, 0, 0), at(0, "c", history.Ready, 0, 0),
		at(0, "a", history.Elected, 1, 9000),
		heir(1000, "b", "heir"), heir(2000, "b", "candidate"), heir(2000, "c", "heir"),
		at(4000, "a", history.Asked, 0, 0), at(5000, "a", history.Ended, 1, 0),
		heir(5000, "c", "leader"), at(5000, "c", history.Elected, 2, 9000),
		heir(6000, "a", "heir"), at(7000, "a", history.Killed, 0, 0),
		at(8000, "c", history.Ended, 2, 0),
	}}
	require.Equal(t, ""+
		"a       1███████████████A████···▒▒▒▒K\n"+
		"b       ····▒▒▒▒▒························\n"+
		"c       ········▒▒▒▒▒▒▒▒▒▒▒▒2████████████\n"+
		"leader  1███████████████████2████████████\n"+
		"        ┬───────┬───────┬───────┬───────┬\n"+
		"        0s      2s      4s      6s      8s\n",
		history.Timeline(h, 41))
}

func TestTheTimelineExplainsFaults(t *testing.T) {
	h := played()
	cut := at(2500, "b", history.Fault, 0, 0)
	cut.Text = "is cut off"
	healed := at(3000, "", history.Healed, 0, 0)
	healed.Text = "the network is whole again"
	h.Events = append(h.Events, cut, healed)
	h.Sort()
	drawn := history.Timeline(h, 72)
	require.Contains(t, drawn, "fault                         a   b\n")
	require.True(t, strings.HasSuffix(drawn, "        a  2.50 s  b is cut off\n        b  3.00 s  the network is whole again\n"), drawn)
}

func TestATimelineOfNothingSaysSo(t *testing.T) {
	require.Equal(t, "nothing happened\n", history.Timeline(history.History{}, 72))
}

func TestATimelineOfOneInstantIsDrawn(t *testing.T) {
	h := history.History{Events: []history.Event{at(5, "a", history.Ready, 0, 0)}}
	require.Contains(t, history.Timeline(h, 10), "a       ·")
}

func TestAFileThatIsNoHistoryIsRefused(t *testing.T) {
	for text, problem := range map[string]string{
		"":                              "history: its first line: EOF",
		"{}\n{\"at\":":                  "history: event 1: unexpected EOF",
		"{}\n{}\n{\"when\":1}\n":        `history: event 2: json: unknown field "when"`,
		"{\"at\":5,\"kind\":\"ready\"}": `history: its first line: json: unknown field "at"`,
	} {
		_, err := history.Read(strings.NewReader(text))
		require.EqualError(t, err, problem)
	}
}

func TestObserveNotesEachRequestBeforeItIsSentAndEachAnswer(t *testing.T) {
	mem := memkv.New()
	faulty := kvfault.Wrap(mem)
	noted := []string{}
	store := history.Observe(faulty.Store, func(e history.Event) {
		for op := kvfault.Create; op <= kvfault.Get; op++ {
			if e.Kind == history.Sent && e.Op == op.String() {
				require.Equal(t, sentBefore(noted, e.Op), faulty.Calls(op), "it is noted before it is sent")
			}
		}
		noted = append(noted, fmt.Sprint(e.Kind, " ", e.Op, " ", e.Call, " ", e.Signature, " ", e.Token > 0, " ", e.TTL, " ", e.Result))
	})
	ctx := t.Context()
	rec, err := store.Create(ctx, "s", kv.Record{Signature: "me", TTL: time.Minute})
	require.NoError(t, err)
	_, err = store.Create(ctx, "s", kv.Record{Signature: "you", TTL: time.Minute})
	require.ErrorIs(t, err, kv.ErrHeld)
	_, err = store.Get(ctx, "s")
	require.NoError(t, err)
	faulty.On(kvfault.Refresh).Next(1).FailReplies(errors.New("broken pipe"))
	_, err = store.Refresh(ctx, "s", rec)
	require.Error(t, err)
	next := rec
	next.Value = "v"
	rec, err = store.Swap(ctx, "s", rec, next)
	require.NoError(t, err)
	require.NoError(t, store.Delete(ctx, "s", rec))
	require.ErrorIs(t, store.Delete(ctx, "s", rec), kv.ErrStale)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	for range store.Watch(watching, "s") {
		break
	}
	require.Equal(t, []string{
		"sent create 1 me false 0s ", "answered create 1 me true 1m0s ok",
		"sent create 2 you false 0s ", "answered create 2  false 0s held",
		"sent get 3  false 0s ", "answered get 3 me true 1m0s ok", "seen  0 me true 1m0s ",
		"sent refresh 4 me true 0s ", "answered refresh 4  false 0s unknown",
		"sent swap 5 me true 0s ", "answered swap 5 me true 1m0s ok",
		"sent delete 6 me true 0s ", "answered delete 6  false 0s ok",
		"sent delete 7 me true 0s ", "answered delete 7  false 0s stale",
		"sent watch 8  false 0s ",
	}, noted)
}

func TestObserveOnlyNotesWhatIsAboutOneElection(t *testing.T) {
	noted := []string{}
	store := history.ObserveOnly(inTurn{memkv.New()}, "s", func(e history.Event) {
		noted = append(noted, fmt.Sprint(e.Kind, " ", e.Op, " ", e.Call, " ", e.Safe))
	})
	ctx := t.Context()
	held := []kv.Held{}
	for _, name := range []string{"s", "s:heir", "t", "t:heir", "st"} {
		rec, err := store.Create(ctx, name, kv.Record{Signature: "me", TTL: time.Minute})
		require.NoError(t, err)
		_, err = store.Get(ctx, name)
		require.NoError(t, err)
		held = append(held, kv.Held{Name: name, Record: rec})
	}
	told := 0
	store.(kv.Batch).RefreshAll(ctx, held, func(int, kv.Record, error) { told++ })
	require.Equal(t, len(held), told)
	require.Equal(t, []string{
		"sent create 1 ", "answered create 1 ", "sent get 2 ", "answered get 2 ", "seen  0 ",
		"sent create 3 heir", "answered create 3 heir", "sent get 4 heir", "answered get 4 heir", "seen  0 heir",
		"sent refresh 5 ", "sent refresh 6 heir", "answered refresh 5 ", "answered refresh 6 heir",
	}, noted)
}

// A capable store has all parts.
type capable struct{ *memkv.Queue }

func (s capable) RefreshAll(ctx context.Context, records []kv.Held, tell func(int, kv.Record, error)) {
	inTurn{s}.RefreshAll(ctx, records, tell)
}

// inTurn refreshes many records one by one.
type inTurn struct{ kv.Store }

func (s inTurn) RefreshAll(ctx context.Context, records []kv.Held, tell func(int, kv.Record, error)) {
	for i, r := range records {
		rec, err := s.Refresh(ctx, r.Name, r.Record)
		tell(i, rec, err)
	}
}

func TestObserveNotesWhichSafeARequestIsAboutAndWhoIsHandedIt(t *testing.T) {
	noted := []string{}
	store := history.Observe(memkv.New(), func(e history.Event) {
		noted = append(noted, strings.TrimSpace(fmt.Sprint(e.Kind, " ", e.Op, " ", e.Safe, " ", e.Next)))
	})
	ctx := t.Context()
	leader, err := store.Create(ctx, "s", kv.Record{Signature: "me", TTL: time.Minute})
	require.NoError(t, err)
	heir, err := store.Create(ctx, "s:heir", kv.Record{Signature: "you", TTL: time.Minute})
	require.NoError(t, err)
	next := leader
	next.Note = "a note"
	leader, err = store.Swap(ctx, "s", leader, next)
	require.NoError(t, err)
	_, err = store.Swap(ctx, "s", leader, heir)
	require.NoError(t, err)
	_, err = store.Get(ctx, "s:heir")
	require.NoError(t, err)
	_, err = store.Get(ctx, "s:request")
	require.ErrorIs(t, err, kv.ErrVacant)
	require.Equal(t, []string{
		"sent create", "answered create", "sent create heir", "answered create heir",
		"sent swap", "answered swap", "sent swap  you", "answered swap",
		"sent get heir", "answered get heir", "seen  heir", "sent get request", "answered get request",
	}, noted)
}

func TestObserveNotesWhoIsHandedASafeInOneStep(t *testing.T) {
	noted := []string{}
	note := func(e history.Event) {
		noted = append(noted, strings.TrimSpace(fmt.Sprint(e.Kind, " ", e.Op, " ", e.Signature, " ", e.Token, " ", e.Next, " ", e.Result)))
	}
	mem, ctx := memkv.New(), t.Context()
	leader, err := mem.Create(ctx, "s", kv.Record{Signature: "me", TTL: time.Minute})
	require.NoError(t, err)
	heir, err := mem.Create(ctx, "s:heir", kv.Record{Signature: "you", TTL: time.Minute})
	require.NoError(t, err)
	store := history.Observe(mem, note).(kv.HandOver)
	for _, want := range []error{nil, kv.ErrStale} {
		_, err = store.HandOver(ctx, "s", leader, "s:heir", heir, "a note")
		require.ErrorIs(t, err, want)
	}
	require.Equal(t, []string{
		"sent handover me 1 you", "answered handover you 3  ok",
		"sent handover me 1 you", "answered handover  0  stale",
	}, noted)

}

func TestAViewCanDoWhatItsStoreCan(t *testing.T) {
	mem, line := memkv.New(), memkv.NewQueue()
	for _, store := range []kv.Store{mem, line, inTurn{mem}, capable{line}, struct{ kv.Store }{line}, struct{ kv.Queue }{line}} {
		view := history.Observe(store, func(history.Event) {})
		require.Equal(t, views.Of(store).Has(), views.Of(view).Has(), "%T", store)
	}
}

func TestObserveNotesWhoWaitsInLine(t *testing.T) {
	noted := []string{}
	note := func(e history.Event) {
		noted = append(noted, fmt.Sprint(e.Kind, " ", e.Op, " ", e.Signature, " ", e.Token, " ", e.TTL, " ", e.Result))
	}
	line := history.Observe(memkv.NewQueue(), note).(kv.Queue)
	ctx := t.Context()
	place, err := line.Join(ctx, "s", kv.Record{Signature: "me", TTL: time.Minute})
	require.NoError(t, err)
	_, leads, err := line.Stay(ctx, "s", place)
	require.NoError(t, err)
	require.True(t, leads)
	require.Equal(t, []string{
		"sent join me 0 0s ", "answered join me 1 1m0s ok",
		"sent stay me 1 0s ", "answered stay me 1 1m0s ok",
	}, noted)
}

func sentBefore(noted []string, op string) int {
	n := 0
	for _, line := range noted {
		if strings.HasPrefix(line, "sent "+op+" ") {
			n++
		}
	}
	return n
}
