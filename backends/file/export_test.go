package filekv

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

// InTime tries something that has to be done within a TTL, with longer ones where the machine was too
// busy for that.
func InTime(t *testing.T, ttl time.Duration, try func(ttl time.Duration) bool) {
	t.Helper()
	for ; !try(ttl); ttl *= 2 {
		require.Less(t, ttl, 20*time.Second, "this machine is too busy to do anything before a record fades")
	}
}

// Folder returns the path of a safe's folder, for tests that play the operator.
func (s *Store) Folder(name string) string { return s.folderOf(escape(name)).path }

// Temps returns the path of the folder for temporary files.
func (s *Store) Temps() string { return s.temps() }

// Lives returns the path of the folder of life files.
func (s *Store) Lives() string { return s.lives() }

// Quit drops the lock of the store's life file, as the kernel does when the process
// ends.
func (s *Store) Quit(t testing.TB) {
	s.lifeMu.Lock()
	defer s.lifeMu.Unlock()
	if s.life == nil {
		return
	}
	if s.life.timer != nil {
		s.life.timer.Stop()
	}
	require.NoError(t, s.life.lock.Close())
	s.life = nil
}

// LifeFile returns the path of the life file that backs a record.
func (s *Store) LifeFile(rec kv.Record) string {
	life, _, _ := strings.Cut(rec.Lease, "/")
	return filepath.Join(s.lives(), life)
}
