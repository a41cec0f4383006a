//go:build unix

package testenv

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/electkv/election/internal/testenv/install"
)

// StartRedisWithClock starts a Redis of the test's own, as [StartRedis] does,
// whose wall clock the test sets: see [Server.SetClock]. It needs a C compiler,
// and fails the test where there is none.
func StartRedisWithClock(t testing.TB, args ...string) *Server {
	t.Helper()
	return startWithClock(t, func() (*Server, error) { return newRedis(args...) })
}

// StartPostgresWithClock starts a PostgreSQL of the test's own, as
// [StartPostgres] does, whose wall clock the test sets, as that of
// [StartRedisWithClock].
func StartPostgresWithClock(t testing.TB, args ...string) *Server {
	t.Helper()
	return startWithClock(t, func() (*Server, error) { return newPostgres(args...) })
}

// StartMariaDBWithClock starts a MariaDB of the test's own, as [StartMariaDB]
// does, whose wall clock the test sets, as that of [StartRedisWithClock].
func StartMariaDBWithClock(t testing.TB, args ...string) *Server {
	t.Helper()
	return startWithClock(t, func() (*Server, error) { return newMariaDB(args...) })
}

func startWithClock(t testing.TB, build func() (*Server, error)) *Server {
	t.Helper()
	return startOwn(t, func() (*Server, error) {
		s, err := build()
		if err != nil {
			return nil, err
		}
		return s, s.takeClock()
	})
}

// takeClock gives the server, before it is started, a wall clock of its own.
func (s *Server) takeClock() error {
	library, err := install.Clock(context.Background())
	if err != nil {
		return err
	}
	// Another user may not be let into the cache, and then nobody complains.
	text, err := os.ReadFile(library)
	if err != nil {
		return err
	}
	library = filepath.Join(s.dir, "clock.so")
	if err := os.WriteFile(library, text, 0o755); err != nil {
		return err
	}
	s.clock = filepath.Join(s.dir, "clock")
	s.env = append(s.env, "LD_PRELOAD="+library, "ELECTION_TEST_CLOCK="+s.clock)
	return s.writeClock(0)
}

func (s *Server) writeClock(offset time.Duration) error {
	f, err := os.OpenFile(s.clock, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(offset)), 0); err != nil {
		return err
	}
	s.offset = offset
	return nil
}

// SetClock sets the wall clock of a server that was started with one of its own
// to this machine's plus offset, at once; it stays so across restarts. The
// server's monotonic clocks go on as they are.
func (s *Server) SetClock(offset time.Duration) {
	s.t.Helper()
	if s.clock == "" {
		s.t.Fatalf("testenv: %s has no clock of its own", s.name)
	}
	s.must(s.writeClock(offset))
}

// JumpClock moves the wall clock, as SetClock does, by so much from where it is.
func (s *Server) JumpClock(by time.Duration) {
	s.t.Helper()
	s.SetClock(s.offset + by)
}
