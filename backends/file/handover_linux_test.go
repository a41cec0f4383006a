package filekv_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	filekv "github.com/electkv/election/backends/file"
	"github.com/electkv/election/kv"
)

// heir holds the safe NAME:heir until it is handed the other, which it refreshes once there
// is a record in NAME:go.
func heir(s *filekv.Store, name string, ttl time.Duration) error {
	ctx := context.Background()
	own, err := s.Create(ctx, name+":heir", signed(ttl))
	if err != nil {
		return err
	}
	fmt.Println("holding", own.Token)
	var given kv.Record
	for going := false; ; time.Sleep(100 * time.Millisecond) {
		if _, err := s.Refresh(ctx, name+":heir", own); err != nil {
			return err
		}
		if going {
			if _, err := s.Refresh(ctx, name, given); err != nil {
				return err
			}
			continue
		}
		got, err := s.Get(ctx, name)
		if err != nil && !errors.Is(err, kv.ErrVacant) {
			return err
		}
		if got.Signature == own.Signature && given.Signature == "" {
			given = got
			fmt.Println("inherited", got.Token)
		}
		if _, err := s.Get(ctx, name+":go"); err == nil && given.Signature != "" {
			if _, err := s.Refresh(ctx, name, given); err != nil {
				return err
			}
			fmt.Println("keeps", given.Token)
			going = true
		}
	}
}

// handOver hands a new record in the safe n over to an heir that another kernel runs, for a
// TTL, and returns the record and when it began to.
func handOver(t *testing.T, s *filekv.Store, elsewhere func(*exec.Cmd) *exec.Cmd, ttl time.Duration) (next *process, given kv.Record, at time.Time) {
	t.Helper()
	next = start(t, elsewhere(command(t, "heir", filepath.Dir(s.Lives()), "n", ample)))
	next.says("holding")
	rec, err := s.Create(t.Context(), "n", signed(ample))
	require.NoError(t, err)
	own, err := s.Get(t.Context(), "n:heir")
	require.NoError(t, err)
	own.TTL = ttl
	at = time.Now()
	given, err = s.Swap(t.Context(), "n", rec, own)
	require.NoError(t, err)
	return next, given, at
}

// Until the heir has refreshed the record, its deadline is by the leader's clock, and the
// lock behind it is by the heir's kernel: nobody may judge by either.
func TestAnHeirUnderAnotherKernelKeepsWhatItWasGiven(t *testing.T) {
	strangers(t, func(t *testing.T, elsewhere func(*exec.Cmd) *exec.Cmd) {
		filekv.InTime(t, frameTTL, func(ttl time.Duration) bool {
			dir := t.TempDir()
			s := open(t, dir)
			next, given, at := handOver(t, s, elsewhere, ttl)
			require.Equal(t, strconv.FormatUint(given.Token, 10), next.says("inherited"))
			trials := map[string]*process{}
			for whose, trial := range map[string]*exec.Cmd{
				"the leader's clock": withoutLocks(t, dir, command(t, "try", dir, "n", ttl)),
				"the heir's clock":   elsewhere(withoutLocks(t, dir, command(t, "try", dir, "n", ttl))),
				"a third clock":      inContainer(t, "11111111-0000-4000-8000-000000000000", withoutLocks(t, dir, command(t, "try", dir, "n", ttl))),
			} {
				trials[whose] = start(t, trial) // all at once, as the TTL runs
			}
			said := map[string]string{}
			for whose, trial := range trials {
				said[whose] = trial.line()
			}
			waiting := start(t, withoutLocks(t, dir, command(t, "claim", dir, "n", ttl)))
			_, err := s.Create(t.Context(), "n:go", signed(ample))
			require.NoError(t, err)
			kept := next.line()
			if time.Since(at) >= ttl {
				return false
			}
			for whose, line := range said {
				require.Contains(t, line, kv.ErrHeld.Error(), whose)
			}
			require.Equal(t, fmt.Sprint("keeps ", given.Token), kept)
			silent(t, ttl, "the heir loses what it was given", waiting, next)
			return true
		})
	})
}

func TestAnHeirUnderAnotherKernelThatDiesIsFollowedAfterItsTTL(t *testing.T) {
	strangers(t, func(t *testing.T, elsewhere func(*exec.Cmd) *exec.Cmd) {
		s := open(t, t.TempDir())
		const ttl = frameTTL / 2 // nobody has to be in time
		next, given, at := handOver(t, s, elsewhere, ttl)
		dir := filepath.Dir(s.Lives())
		waiting := start(t, withoutLocks(t, dir, command(t, "claim", dir, "n", frameTTL)))
		require.NoError(t, unix.Kill(-next.cmd.Process.Pid, unix.SIGKILL))
		token, err := strconv.ParseUint(waiting.says("holding"), 10, 64)
		require.NoError(t, err)
		require.Greater(t, token, given.Token)
		require.GreaterOrEqual(t, time.Since(at), ttl)
	})
}
