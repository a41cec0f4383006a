package filekv_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	filekv "github.com/electkv/election/backends/file"
	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/kv"
)

// A stretch is a line of the log that the processes of a crowd write to: the
// process pid holds the safe under token, or does not any more.
type stretch struct {
	what  string // begin or end
	pid   int
	token uint64
	nanos int64
}

func (l stretch) String() string {
	return fmt.Sprintf("%s %d %d %d\n", l.what, l.pid, l.token, l.nanos)
}

// hammer creates, publishes, hands over to itself and deletes as fast as it can,
// dies with a record now and then, and logs when it holds the safe.
func hammer(s *filekv.Store, name string, ttl time.Duration) error {
	log, err := os.OpenFile(os.Getenv("FILEKV_LOG"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	note := func(what string, rec kv.Record) {
		fmt.Fprint(log, stretch{what, os.Getpid(), rec.Token, int64(boottime.Now())})
	}
	ctx := context.Background()
	for {
		mine := signed(ttl)
		rec, err := s.Create(ctx, name, mine)
		if errors.Is(err, kv.ErrHeld) {
			time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond)
			continue
		}
		if err != nil { // unknown, as after a writer that was stuck
			if rec, err = s.Get(ctx, name); err != nil || rec.Signature != mine.Signature {
				continue
			}
		}
		note("begin", rec)
		if rand.IntN(4) == 0 {
			if rec, err = s.Swap(ctx, name, rec, kv.Record{Signature: rec.Signature, Value: "w"}); err != nil {
				return err
			}
		}
		if rand.IntN(4) == 0 {
			note("end", rec)
			if rec, err = s.Swap(ctx, name, rec, signed(ttl)); err != nil {
				return err
			}
			note("begin", rec)
		}
		if _, err = s.Refresh(ctx, name, rec); err != nil {
			return err
		}
		note("end", rec)
		if rand.IntN(20) == 0 {
			return unix.Kill(os.Getpid(), unix.SIGKILL)
		}
		if err := s.Delete(ctx, name, rec); err != nil {
			return err
		}
	}
}

// At any time one of many processes holds the safe, though they die at every
// point of an operation, and sometimes a writer that is stuck in front of the
// queue makes all others go on without it.
func TestOneOfManyProcessesHoldsTheSafeAndTokensGrow(t *testing.T) {
	const crowd, span = 5, 4 * time.Second
	s := open(t, t.TempDir())
	path := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	join := func() *process {
		cmd := command(t, "hammer", filepath.Dir(s.Lives()), "n", ample)
		cmd.Env = append(cmd.Env, "FILEKV_LOG="+path)
		return start(t, cmd)
	}
	killed := make(map[int]int64) // when, at the earliest
	var processes [crowd]*process
	for i := range processes {
		processes[i] = join()
	}
	kill := func(p *process) {
		killed[p.cmd.Process.Pid] = int64(boottime.Now())
		require.Empty(t, p.dies(), "a process failed")
	}
	// On a busy machine they hardly live for long enough to get anywhere: they get more and more time.
	for began, pause := time.Now(), 60*time.Millisecond; ; time.Sleep(rand.N(pause)) {
		since := time.Since(began)
		if since > span && (stretches(t, path) > few || since > 2*time.Minute) {
			break
		}
		pause = max(pause, (since-span)/4)
		i := rand.IntN(crowd)
		kill(processes[i])
		processes[i] = join()
		if rand.IntN(8) == 0 {
			obstruct(t, s.Folder("n"), 300*time.Millisecond)
		}
	}
	for _, p := range processes {
		kill(p)
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	t.Logf("%d stretches, %d deaths", checkLog(t, text, killed), len(killed))

	rec, err := s.Create(t.Context(), "n", signed(ample))
	require.NoError(t, err)
	require.NoError(t, s.Delete(t.Context(), "n", rec))
	require.Len(t, files(t, s.Folder("n")), 1, "a head, and no page left over")
}

// few stretches are as good as none.
const few = 10

// stretches counts those that have begun.
func stretches(t *testing.T, log string) int {
	t.Helper()
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	return bytes.Count(text, []byte("begin"))
}

// obstruct locks a folder, if it is there, for a while.
func obstruct(t *testing.T, folder string, d time.Duration) {
	t.Helper()
	lock := flock.New(folder, flock.SetFlag(os.O_RDONLY))
	_, err := lock.TryLock()
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	require.NoError(t, err)
	time.Sleep(d)
	require.NoError(t, lock.Close())
}

// checkLog requires that a stretch begins after the one before has ended, or
// after its process was killed, and under a larger token.
func checkLog(t *testing.T, text []byte, killed map[int]int64) (n int) {
	t.Helper()
	var open *stretch
	var token uint64
	for line := range bytes.Lines(text) {
		var l stretch
		_, err := fmt.Sscan(string(line), &l.what, &l.pid, &l.token, &l.nanos)
		require.NoError(t, err)
		if l.what == "end" {
			require.NotNil(t, open, "%s", line)
			require.Equal(t, open.pid, l.pid, "%s", line)
			require.Equal(t, open.token, l.token, "%s", line)
			open = nil
			continue
		}
		if open != nil {
			when, dead := killed[open.pid]
			require.True(t, dead && when <= l.nanos, "two owners: %s%s", open, line)
		}
		require.Greater(t, l.token, token, "%s", line)
		open, token = &l, l.token
		n++
	}
	require.Greater(t, n, few, "the crowd hardly did anything")
	return n
}

// A crowd of goroutines, each with a Store of its own, starts at one moment on a
// safe that nobody has used.
func TestOneOfManyStoresGetsANewSafe(t *testing.T) {
	dir := t.TempDir()
	for round := range 30 {
		const crowd = 16
		name := fmt.Sprint("n", round)
		won := make(chan error, crowd)
		gun := make(chan struct{})
		for range crowd {
			s := open(t, dir)
			go func() {
				<-gun
				_, err := s.Create(t.Context(), name, signed(ample))
				won <- err
			}()
		}
		close(gun)
		winners := 0
		for range crowd {
			err := <-won
			if err == nil {
				winners++
				continue
			}
			require.ErrorIs(t, err, kv.ErrHeld)
		}
		require.Equal(t, 1, winners)
	}
}
