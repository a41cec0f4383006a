//go:build unix

package main

import (
	"context"
	"iter"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	filekv "github.com/electkv/election/backends/file"
	"github.com/electkv/election/cmd/elect/internal/demo"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/kv"
)

// A lateStore tells of each change later than it came about, as one that is polled.
type lateStore struct {
	kv.Store
	late time.Duration
}

// A sight is what a watch showed, and when it may be told.
type sight struct {
	rec kv.Record
	err error
	due time.Time
}

// Watch implements [kv.Store].
func (s lateStore) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		sights := make(chan sight, 100)
		go func() {
			defer close(sights)
			for rec, err := range s.Store.Watch(ctx, name) {
				sights <- sight{rec, err, time.Now().Add(s.late)}
			}
		}()
		for seen := range sights {
			select {
			case <-time.After(time.Until(seen.due)):
			case <-ctx.Done(): // what was not told yet never is
				yield(kv.Record{}, context.Cause(ctx))
				return
			}
			if !yield(seen.rec, seen.err) {
				return
			}
		}
	}
}

// One that was late itself, on a busy machine, is played again with a longer TTL.
func TestTheDemoWaitsForAWatchThatIsLate(t *testing.T) {
	t.Parallel()
	for ttl := 2 * time.Second; ; ttl *= 2 {
		var wrong []string
		for _, f := range playLate(t, ttl) {
			if f.Verdict == oracle.Kept {
				continue
			}
			require.NotContains(t, promises[:3], f.Promise, f.Detail)
			require.False(t, f.Promise == "only the heir is elected" && f.Verdict == oracle.Broken, f.Detail)
			wrong = append(wrong, f.Promise+": "+f.Detail)
		}
		if len(wrong) == 0 {
			return
		}
		require.Less(t, ttl, 8*time.Second, "%q", wrong)
	}
}

// playLate plays a demo in which each watch is late by most of the TTL, and returns what was found.
func playLate(t *testing.T, ttl time.Duration) oracle.Findings {
	t.Helper()
	dir := t.TempDir()
	store, err := filekv.New(dir, nil)
	require.NoError(t, err)
	play := demo.Plays(ttl)["ring"] // it asks nothing by the store
	stage := &demo.Stage{
		Play: play, Store: lateStore{store, 3 * ttl / 4}, Name: "late", TTL: ttl, Slack: 10 * time.Second,
		Command: func(part demo.Part) *exec.Cmd {
			cmd := candidateCommand("file://"+dir, "late")(part)
			cmd.Path = elect
			return cmd
		},
		Tell:    func(history.Event) {},
		Curtain: func() {},
	}
	played, err := stage.Perform(t.Context())
	require.NoError(t, err)
	return play.Judge(played)
}
