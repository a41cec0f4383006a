package rediskv

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/board"
	"github.com/electkv/election/kv"
)

// A watched is a safe whose looks are the test's.
type watched struct {
	sight *sight
	looks chan kv.Record // what the next looks see
	told  []uint64       // revisions
}

func watchOf(t *testing.T, do func(w *watched)) {
	synctest.Test(t, func(t *testing.T) {
		w := &watched{looks: make(chan kv.Record, 1)}
		s := New(nil, nil)
		b := board.New(rest, func(name string, topic *board.Topic) (board.Look, func(), error) {
			w.sight = &sight{store: s, name: name, topic: topic, lookout: func(ctx context.Context, _ place) (kv.Record, time.Duration, error) {
				select {
				case rec := <-w.looks:
					return rec, time.Hour, nil
				case <-ctx.Done():
					return kv.Record{}, 0, ctx.Err()
				}
			}}
			return w.sight.look, func() {}, nil
		})
		w.looks <- revised(1)
		stop := b.Follow("safe", func(rec kv.Record, _ error) { w.told = append(w.told, rec.Revision) })
		defer stop()
		synctest.Wait()
		require.Equal(t, []uint64{1}, w.told)
		do(w)
	})
}

func revised(n uint64) kv.Record {
	return kv.Record{Signature: "s", Token: 1, Revision: n, TTL: time.Hour}
}

// says has the watch hear that a revision has followed on another one; zero is a vacancy.
func (w *watched) says(before, revision uint64) {
	text := ""
	if revision > 0 {
		text = kv.Encode(revised(revision))
	}
	w.sight.hear(fmt.Sprintf("%d %s", before, text))
	synctest.Wait()
}

func TestWhatAWriterSaysIsShownBeforeALook(t *testing.T) {
	watchOf(t, func(w *watched) {
		w.says(1, 2) // the look that follows has no answer yet
		require.Equal(t, []uint64{1, 2}, w.told)
		w.looks <- revised(2)
		synctest.Wait()
		w.says(2, 0)
		require.Equal(t, []uint64{1, 2, 0}, w.told)
	})
}

func TestWhatFollowsOnSomethingElseIsNotShown(t *testing.T) {
	for _, message := range []string{
		"", "look!", "0 ", "2 ", "-1 ", "1", "1 look!", "18446744073709551616 ",
		"2 " + kv.Encode(revised(3)), "1 " + kv.Encode(kv.Record{Signature: "s"}),
		"1 " + strings.Replace(kv.Encode(revised(2)), `"election":1`, `"election":2`, 1),
	} {
		watchOf(t, func(w *watched) {
			w.sight.hear(message)
			synctest.Wait()
			require.Equal(t, []uint64{1}, w.told, message)
			w.looks <- revised(7)
			synctest.Wait()
			time.Sleep(2 * rest)
			synctest.Wait()
			require.Equal(t, []uint64{1, 7}, w.told, "it has looked")
		})
	}
}

// A look that is under way may have seen what came before or after.
func TestNothingIsShownOfWhatIsSaidDuringALook(t *testing.T) {
	watchOf(t, func(w *watched) {
		time.Sleep(2 * rest)
		w.sight.hear("look!")
		synctest.Wait()
		w.says(1, 2)
		require.Equal(t, []uint64{1}, w.told)
		w.looks <- revised(3)
		synctest.Wait()
		require.Equal(t, []uint64{1, 3}, w.told)
		w.says(1, 2)
		require.Equal(t, []uint64{1, 3}, w.told, "it is late")
	})
}

// A vacancy that a look has shown has no revision: what comes then may be old.
func TestNothingIsShownAfterAVacancyThatALookHasShown(t *testing.T) {
	watchOf(t, func(w *watched) {
		time.Sleep(2 * rest)
		w.sight.hear("look!")
		w.looks <- kv.Record{}
		synctest.Wait()
		require.Equal(t, []uint64{1, 0}, w.told)
		w.says(1, 2)
		w.says(0, 2)
		require.Equal(t, []uint64{1, 0}, w.told)
	})
}
