package sqlkv_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	sqlkv "github.com/electkv/election/backends/sql"
	"github.com/electkv/election/kv"
)

// TestAProcessThatIsKilledInTheMiddleOfAWriteLeavesNothing holds the lock, and is
// waited for; then it is killed with the database half written.
func TestAProcessThatIsKilledInTheMiddleOfAWriteLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, journal := range []string{"WAL", "DELETE"} {
		t.Run(journal, func(t *testing.T) {
			p := at(t, sqlkv.SQLite, "file:"+filepath.Join(t.TempDir(), "election.db")+"?_pragma=journal_mode("+journal+")")
			store := p.store(t)
			name, rec := held(t, store)
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), holdVariable+"="+p.source)
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			ended := false
			kill := func() {
				if !ended {
					ended = true
					require.NoError(t, cmd.Process.Kill())
					_ = cmd.Wait() // it was killed
				}
			}
			defer kill()
			line, err := bufio.NewReader(out).ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, "holding", strings.TrimSpace(line))
			_, err = store.Refresh(within(t, 200*time.Millisecond), name, rec)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			undecided(t, err, "refresh")
			kill()
			holds(t, store, name, rec)
			got, err := store.Refresh(within(t, patience), name, rec)
			require.NoError(t, err)
			require.Equal(t, rec, got)
		})
	}
}

// TestAFullDiskIsNoLoss has the database at its limit: what is there can be refreshed
// and given up, what does not fit is an error.
func TestAFullDiskIsNoLoss(t *testing.T) {
	t.Parallel()
	p := inSQLite(t)
	name, rec := held(t, p.store(t))
	store := sqlkv.New(p.open(t, "&_pragma=max_page_count(6)"), p.dialect, p.opts())
	next := rec
	next.Value = strings.Repeat("x", 1<<19)
	_, err := store.Swap(within(t, patience), name, rec, next)
	undecided(t, err, "publish")
	require.ErrorContains(t, err, "full")
	for range 10 {
		got, err := store.Refresh(within(t, patience), name, rec)
		require.NoError(t, err)
		require.Equal(t, rec, got)
	}
	require.NoError(t, store.Delete(within(t, patience), name, rec))
}

// TestManyProcessesTakeTurnsWithoutAWriteAheadLog has readers and writers lock each
// other out, and nobody's settings wait for that.
func TestManyProcessesTakeTurnsWithoutAWriteAheadLog(t *testing.T) {
	t.Parallel()
	p := at(t, sqlkv.SQLite, "file:"+filepath.Join(t.TempDir(), "election.db")+"?_pragma=journal_mode(DELETE)&_pragma=synchronous(OFF)")
	takeTurns(t, p.store(t), named(), 4)
}

// TestTheUsersOwnTimeoutIsWaitedForOnceAtMost has the data source say that a lock is
// waited for, for longer than the context lasts. Before version 1.61 the driver does.
func TestTheUsersOwnTimeoutIsWaitedForOnceAtMost(t *testing.T) {
	t.Parallel()
	p := inSQLite(t)
	store := sqlkv.New(p.open(t, "&_pragma=busy_timeout(2000)"), p.dialect, p.opts())
	name, rec := held(t, store)
	defer p.lock(t, name)()
	start := time.Now()
	_, err := store.Refresh(within(t, 200*time.Millisecond), name, rec)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(start), patience/3)
}

// The record is alive when the write lock is asked for, and has expired when it is granted.
func TestWhatWaitedForTheLockBringsNothingBack(t *testing.T) {
	t.Parallel()
	p := inSQLite(t)
	store := sqlkv.New(p.open(t, "&_pragma=busy_timeout(30000)"), p.dialect, p.opts())
	for what, prolong := range map[string]func(name string, rec kv.Record) error{
		"a refresh": func(name string, rec kv.Record) error {
			_, err := store.Refresh(within(t, patience), name, rec)
			return err
		},
		"a refresh of many": func(name string, rec kv.Record) (err error) {
			store.RefreshAll(within(t, patience), []kv.Held{{Name: name, Record: rec}}, func(_ int, _ kv.Record, e error) { err = e })
			return err
		},
		"a hand-over": func(name string, rec kv.Record) error {
			_, err := store.Swap(within(t, patience), name, rec, signed("the heir"))
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			name := named()
			rec, err := store.Create(within(t, patience), name, mortal(time.Second))
			require.NoError(t, err)
			letGo := p.lock(t, name)
			done := make(chan error, 1)
			go func() { done <- prolong(name, rec) }()
			require.Eventually(t, func() bool {
				_, err := store.Get(within(t, patience), name)
				return errors.Is(err, kv.ErrVacant)
			}, patience, 10*time.Millisecond)
			require.Empty(t, done)
			letGo()
			require.ErrorIs(t, <-done, kv.ErrStale)
			_, err = store.Get(within(t, patience), name)
			require.ErrorIs(t, err, kv.ErrVacant)
		})
	}
}
