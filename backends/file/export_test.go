package filekv

import (
	"path/filepath"
	"strings"

	"github.com/electkv/election/kv"
)

// Folder returns the path of a safe's folder, for tests that play the operator.
func (s *Store) Folder(name string) string { return s.folderOf(escape(name)).path }

// Temps returns the path of the folder for temporary files.
func (s *Store) Temps() string { return filepath.Join(s.dir, "temps") }

// Lives returns the path of the folder of life files.
func (s *Store) Lives() string { return s.lives() }

// LifeFile returns the path of the life file that backs a record.
func (s *Store) LifeFile(rec kv.Record) string {
	life, _, _ := strings.Cut(rec.Lease, "/")
	return filepath.Join(s.lives(), life)
}
