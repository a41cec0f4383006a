package linear_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/linear"
	"github.com/electkv/election/kv"
)

// at gives an operation of one safe its times, in milliseconds.
func at(client int, call, back int, op linear.Operation) linear.Operation {
	op.Client, op.Name = client, "safe"
	op.Call, op.Return = time.Duration(call)*time.Millisecond, time.Duration(back)*time.Millisecond
	return op
}

// rec is a record with a TTL of 100 ms.
func rec(signature, value string, token, revision uint64) *linear.Record {
	return &linear.Record{Signature: signature, Value: value, Token: token, Revision: revision, TTL: 100 * time.Millisecond}
}

func create(got *linear.Record, outcome linear.Outcome) linear.Operation {
	op := linear.Operation{Kind: linear.Create, Given: rec(got.Signature, got.Value, 0, 0), Outcome: outcome}
	if outcome == linear.Done {
		op.Got = got
	}
	return op
}

func swap(old, got *linear.Record, outcome linear.Outcome) linear.Operation {
	op := linear.Operation{Kind: linear.Swap, Given: old, Next: rec(got.Signature, got.Value, 0, 0), Outcome: outcome}
	if outcome == linear.Done {
		op.Got = got
	}
	return op
}

func refresh(r *linear.Record, outcome linear.Outcome) linear.Operation {
	op := linear.Operation{Kind: linear.Refresh, Given: r, Outcome: outcome}
	if outcome == linear.Done {
		op.Got = r
	}
	return op
}

// together refreshes a record in a batch.
func together(given, got *linear.Record, share bool, outcome linear.Outcome) linear.Operation {
	op := refresh(given, outcome)
	op.Share = share
	if outcome == linear.Done {
		op.Got = got
	}
	return op
}

// createShared creates a record that may share a lease from the start.
func createShared(got *linear.Record) linear.Operation {
	op := create(got, linear.Done)
	op.Given.Shared = true
	return op
}

func remove(r *linear.Record, outcome linear.Outcome) linear.Operation {
	return linear.Operation{Kind: linear.Delete, Given: r, Outcome: outcome}
}

func get(r *linear.Record) linear.Operation {
	if r == nil {
		return linear.Operation{Kind: linear.Get, Outcome: linear.Vacant}
	}
	return linear.Operation{Kind: linear.Get, Got: r, Outcome: linear.Done}
}

// handOver hands the safe over to an heir that has its own.
func handOver(old, heir, got *linear.Record, outcome linear.Outcome) linear.Operation {
	op := swap(old, got, outcome)
	op.Kind, op.Place, op.Heir = linear.HandOver, "heir's", heir
	return op
}

// beside is an operation of the heir's safe.
func beside(op linear.Operation) linear.Operation {
	op.Name = "heir's"
	return op
}

func death() linear.Operation { return linear.Operation{Kind: linear.Death} }

func TestHistoriesThatCanBeTold(t *testing.T) {
	a, b := rec("a", "1", 1, 1), rec("b", "2", 2, 2)
	a2 := rec("a", "3", 1, 3)
	for sentence, history := range map[string][]linear.Operation{
		"one after the other": {
			at(1, 0, 1, create(a, linear.Done)), at(2, 2, 3, create(b, linear.Held)),
			at(1, 4, 5, swap(a, a2, linear.Done)), at(2, 6, 7, get(a2)),
			at(1, 8, 9, remove(a, linear.Done)), at(2, 10, 11, get(nil)),
			at(2, 12, 13, create(rec("c", "4", 9, 9), linear.Done)),
		},
		"an unknown create that happened": {
			at(1, 0, 10, create(a, linear.Unknown)), at(2, 20, 21, get(a)),
		},
		"an unknown create that happened later": {
			at(1, 0, 10, create(a, linear.Unknown)), at(2, 20, 21, get(nil)), at(2, 30, 31, get(a)),
		},
		"an unknown create that never happened": {
			at(1, 0, 10, create(a, linear.Unknown)), at(2, 20, 21, get(nil)), at(2, 30, 31, create(b, linear.Done)), at(2, 40, 41, get(b)),
		},
		"an unknown create that nobody saw but by the refusal": {
			at(1, 0, 10, create(a, linear.Unknown)), at(2, 20, 21, create(b, linear.Held)),
		},
		"an unknown delete that happened later": {
			at(1, 0, 1, create(a, linear.Done)), at(1, 2, 3, remove(a, linear.Unknown)),
			at(2, 4, 5, get(a)), at(2, 6, 7, get(nil)),
		},
		"an unknown publication that the owner saw by a refusal": {
			at(1, 0, 1, create(a, linear.Done)), at(1, 2, 3, swap(a, a2, linear.Unknown)),
			at(1, 4, 5, swap(a, rec("a", "5", 0, 0), linear.Stale)), at(1, 6, 7, get(a2)),
		},
		"an unknown hand-over, then its heir's": {
			at(1, 0, 1, create(a, linear.Done)), at(1, 2, 3, swap(a, b, linear.Unknown)),
			at(2, 4, 5, get(b)), at(2, 6, 7, swap(b, rec("c", "3", 3, 3), linear.Done)),
		},
		"an heir is handed the safe in one step, and gives up its own": {
			at(1, 0, 1, create(a, linear.Done)), beside(at(2, 2, 3, create(b, linear.Done))),
			at(1, 4, 10, handOver(a, b, rec("b", "2", 3, 3), linear.Done)), beside(at(2, 5, 6, remove(b, linear.Done))),
			at(2, 11, 12, get(rec("b", "2", 3, 3))),
		},
		"a hand-over in one step is refused for the heir's sake": {
			at(1, 0, 1, create(a, linear.Done)), at(1, 4, 10, handOver(a, b, b, linear.Stale)), at(1, 11, 12, get(a)),
		},
		"a hand-over in one step is not supported": {
			at(1, 0, 1, create(a, linear.Done)), at(1, 4, 10, handOver(a, b, b, linear.Unsupported)), at(1, 11, 12, get(a)),
		},
		"a token is larger than one that nobody was told": {
			at(1, 0, 1, create(a, linear.Done)), at(1, 2, 3, swap(a, b, linear.Unknown)), at(1, 4, 5, refresh(a, linear.Stale)),
			at(2, 200, 201, create(rec("d", "4", 3, 4), linear.Done)),
		},
		"a record that fades at its TTL": {
			at(1, 0, 10, create(a, linear.Done)), at(2, 90, 100, get(nil)),
		},
		"a record that stays beyond its TTL": {
			at(1, 0, 10, create(a, linear.Done)), at(2, 500, 501, get(a)), at(1, 510, 511, refresh(a, linear.Done)), at(1, 550, 551, get(a)),
		},
		"a record whose refresh is unknown may fade as if there was none": {
			at(1, 0, 10, create(a, linear.Done)), at(1, 50, 60, refresh(a, linear.Unknown)), at(2, 99, 101, get(nil)),
		},
		"a record that fades with its holder": {
			at(1, 0, 10, create(a, linear.Done)), at(1, 20, 20, death()), at(2, 15, 25, get(nil)),
		},
		"a record that was taken over does not need the first holder": {
			at(1, 0, 1, create(a, linear.Done)), at(2, 2, 3, swap(a, b, linear.Done)), at(1, 4, 4, death()), at(3, 5, 6, get(b)),
		},
		"two readers at the same time as a write": {
			at(1, 0, 50, create(a, linear.Done)), at(2, 10, 20, get(a)), at(3, 0, 15, get(nil)),
		},
	} {
		require.Equal(t, linear.Kept, check(t, history).Result, sentence)
	}
}

func TestHistoriesThatCannotBeTold(t *testing.T) {
	a, b := rec("a", "1", 1, 1), rec("b", "2", 2, 2)
	noted := rec("a", "1", 1, 1)
	noted.Note = "n"
	a2 := rec("a", "3", 1, 3)
	for sentence, history := range map[string][]linear.Operation{
		"an heir is handed the safe in one step after it gave its own up": {
			at(1, 0, 1, create(a, linear.Done)), beside(at(2, 2, 3, create(b, linear.Done))),
			beside(at(2, 4, 5, remove(b, linear.Done))), at(1, 6, 10, handOver(a, b, rec("b", "2", 3, 3), linear.Done)),
		},
		"an heir that never was is handed the safe in one step": {
			at(1, 0, 1, create(a, linear.Done)), at(1, 6, 10, handOver(a, b, rec("b", "2", 3, 3), linear.Done)),
		},
		"a hand-over in one step is refused, and seen": {
			at(1, 0, 1, create(a, linear.Done)), at(1, 4, 10, handOver(a, b, b, linear.Stale)), at(1, 11, 12, get(b)),
		},
		"an acknowledged create is gone": {
			at(1, 0, 1, create(a, linear.Done)), at(2, 2, 3, get(nil)),
		},
		"an unknown create is seen, then not, then again": {
			at(1, 0, 10, create(a, linear.Unknown)), at(2, 20, 21, get(a)), at(2, 22, 23, get(nil)), at(2, 24, 25, get(a)),
		},
		"an unknown create happens twice": {
			at(1, 0, 10, create(a, linear.Unknown)), at(2, 20, 21, get(a)), at(2, 22, 23, remove(a, linear.Done)), at(2, 24, 25, get(a)),
		},
		"an unknown create happens before its call": {
			at(2, 0, 1, get(a)), at(1, 2, 10, create(a, linear.Unknown)),
		},
		"an unknown create happens in spite of a record": {
			at(2, 0, 1, create(b, linear.Done)), at(1, 2, 10, create(a, linear.Unknown)), at(2, 20, 21, get(a)),
		},
		"a create is refused and nobody holds the safe": {
			at(1, 0, 1, create(a, linear.Held)),
		},
		"an unknown delete is half done": {
			at(1, 0, 1, create(a, linear.Done)), at(1, 2, 3, remove(a, linear.Unknown)),
			at(2, 4, 5, get(nil)), at(2, 6, 7, get(a)),
		},
		"an unknown delete of an old record empties the safe": {
			at(1, 0, 1, create(a, linear.Done)), at(1, 2, 3, swap(a, b, linear.Done)),
			at(1, 4, 5, remove(a, linear.Unknown)), at(2, 6, 7, get(nil)),
		},
		"a delete is refused that has been done": {
			at(1, 0, 1, create(a, linear.Done)), at(1, 2, 3, remove(a, linear.Stale)), at(2, 4, 5, get(nil)),
		},
		"a refused publication is seen": {
			at(1, 0, 1, create(a, linear.Done)), at(1, 2, 3, swap(a, a2, linear.Stale)), at(2, 4, 5, get(a2)),
		},
		"a record fades before its TTL": {
			at(1, 0, 10, create(a, linear.Done)), at(2, 90, 99, get(nil)),
		},
		"a record fades before its TTL, which only a later read shows": {
			at(1, 0, 10, create(a, linear.Done)), at(2, 80, 101, get(nil)), at(3, 90, 95, get(nil)),
		},
		"a refreshed record fades before its TTL": {
			at(1, 0, 10, create(a, linear.Done)), at(1, 50, 60, refresh(a, linear.Done)), at(2, 99, 149, get(nil)),
		},
		"a refresh that began earlier and came later shortens the life": {
			at(1, 0, 10, create(a, linear.Done)), at(1, 20, 80, refresh(a, linear.Done)), at(2, 50, 60, refresh(a, linear.Done)),
			at(3, 121, 149, get(nil)),
		},
		"a faded record comes back": {
			at(1, 0, 10, create(a, linear.Done)), at(2, 100, 101, get(nil)), at(2, 110, 111, get(a)),
		},
		"a faded record is refreshed": {
			at(1, 0, 10, create(a, linear.Done)), at(2, 100, 101, get(nil)), at(1, 110, 111, refresh(a, linear.Done)),
		},
		"a record fades before its holder dies": {
			at(1, 0, 10, create(a, linear.Done)), at(2, 11, 19, get(nil)), at(1, 20, 20, death()),
		},
		"a record fades with a client that does not hold it": {
			at(1, 0, 10, create(a, linear.Done)), at(3, 20, 20, death()), at(2, 25, 26, get(nil)),
		},
		"a token comes again": {
			at(1, 0, 1, create(a, linear.Done)), at(1, 2, 3, remove(a, linear.Done)), at(2, 4, 5, create(rec("b", "2", 1, 2), linear.Done)),
		},
		"a token is not larger than one that nobody was told": {
			at(1, 0, 1, create(a, linear.Done)), at(1, 2, 3, swap(a, b, linear.Unknown)), at(1, 4, 5, refresh(a, linear.Stale)),
			at(2, 200, 201, create(rec("d", "4", 2, 4), linear.Done)),
		},
		"a revision comes again": {
			at(1, 0, 1, create(a, linear.Done)), at(1, 2, 3, swap(a, rec("a", "3", 1, 1), linear.Done)),
		},
		"a reader is told another token": {
			at(1, 0, 1, create(a, linear.Done)), at(2, 2, 3, get(rec("a", "1", 5, 1))),
		},
		"a reader is told another revision": {
			at(1, 0, 1, create(a, linear.Done)), at(2, 2, 3, get(rec("a", "1", 1, 7))),
		},
		"a reader is told another value": {
			at(1, 0, 1, create(a, linear.Done)), at(2, 2, 3, get(rec("a", "7", 1, 1))),
		},
		"a reader is told another note": {
			at(1, 0, 1, create(a, linear.Done)), at(2, 2, 3, get(noted)),
		},
		"a reader is told of a record that nobody wrote": {
			at(2, 2, 3, get(a)),
		},
		"an own record is told to be foreign": {
			at(1, 0, 1, create(a, linear.Done)),
			at(2, 2, 3, get(&linear.Record{Signature: "a", Value: "1", Token: 1, Revision: 1, Foreign: true})),
		},
		"a read is answered with what answers a create": {
			at(1, 0, 1, linear.Operation{Kind: linear.Get, Outcome: linear.Held}),
		},
		"a shorter TTL than asked is granted": {
			at(1, 0, 1, linear.Operation{
				Kind: linear.Create, Given: a, Outcome: linear.Done,
				Got: &linear.Record{Signature: "a", Value: "1", Token: 1, Revision: 1, TTL: 50 * time.Millisecond},
			}),
		},
	} {
		require.Equal(t, linear.Broken, check(t, history).Result, sentence)
	}
}

func TestABrokenHistoryIsReadBackAndBrokenStill(t *testing.T) {
	crowd := ample
	crowd.Ops = 600
	history := record(t, crowd, func() kv.Store { return newNotebook(deletesAnything) })
	verdict := check(t, history)
	require.Equal(t, linear.Broken, verdict.Result)
	dir := filepath.Join(t.TempDir(), "new")
	files, err := verdict.Save(dir)
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, "history.ndjson"), filepath.Join(dir, "broken.html")}, files)

	f, err := os.Open(files[0])
	require.NoError(t, err)
	defer f.Close()
	again, err := linear.Read(f)
	require.NoError(t, err)
	require.Equal(t, history, again)
	require.Equal(t, verdict.Names, check(t, again).Names)

	picture, err := os.ReadFile(files[1])
	require.NoError(t, err)
	require.Contains(t, string(picture), "delete s", "the picture tells the operations")
}

func TestACheckWithoutTimeIsUndecided(t *testing.T) {
	history := record(t, ample, func() kv.Store { return newNotebook("") })
	verdict, err := linear.Check(history, 0)
	require.NoError(t, err)
	require.Equal(t, linear.Undecided, verdict.Result)
	require.NotEmpty(t, verdict.Names)
}

func TestAHistoryThatCannotBeJudgedIsRefused(t *testing.T) {
	a := rec("a", "1", 1, 1)
	_, err := linear.Check([]linear.Operation{
		at(1, 0, 1, create(a, linear.Unknown)), at(1, 2, 3, create(a, linear.Done)),
	}, patience)
	require.ErrorContains(t, err, "two writes of one signature, value and note")

	_, err = linear.Check([]linear.Operation{{Kind: linear.Create, Name: "safe", Outcome: linear.Unknown}}, patience)
	require.ErrorContains(t, err, "a record is missing")

	_, err = linear.Read(strings.NewReader("{}\n{\"kind\":"))
	require.ErrorContains(t, err, "operation 1")

	for _, binary := range []linear.Record{{Signature: "\xff"}, {Value: "\xff"}, {Note: "\xff"}, {Signature: "\xd0", Note: "\x90"}} {
		history := []linear.Operation{at(1, 0, 1, create(&binary, linear.Done))}
		history[0].Given = &binary
		require.ErrorContains(t, linear.Write(new(bytes.Buffer), history), "UTF-8")
	}
}
