package filekv

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

func newFolder(t *testing.T) folder {
	t.Helper()
	s, err := New(t.TempDir(), nil)
	require.NoError(t, err)
	f, err := s.folder("n")
	require.NoError(t, err)
	require.NoError(t, f.found())
	return f
}

func (f folder) mustRead(t *testing.T) sheet {
	t.Helper()
	found, err := f.read()
	require.NoError(t, err)
	return found
}

func always() error { return nil }

func TestOneOfTwoWritersTurnsThePage(t *testing.T) {
	f := newFolder(t)
	found := f.mustRead(t)
	err := f.turn(found, turn{text: []byte("second"), still: func() error {
		return f.turn(found, turn{text: []byte("first"), still: always})
	}})
	require.ErrorIs(t, err, errTurned)
	now := f.mustRead(t)
	require.Equal(t, found.number+1, now.number)
	require.Equal(t, "first", string(now.text))
	require.Empty(t, now.strays)
}

// While a writer stands still just before its rename, others write, and vacate
// the safe, so that it looks as it did.
func TestAWriterThatWasStoppedBeforeItsRenameHasNoEffect(t *testing.T) {
	for writes := range 6 {
		f := newFolder(t)
		err := f.turn(f.mustRead(t), turn{text: []byte("late"), still: func() error {
			for i := range writes + 1 {
				next := turn{text: []byte("others"), still: always}
				if i%2 == 1 {
					next.text = nil
				}
				require.NoError(t, f.turn(f.mustRead(t), next))
			}
			return nil
		}})
		require.ErrorIs(t, err, errTurned)
		require.NotEqual(t, "late", string(f.mustRead(t).text))
		require.Empty(t, f.mustRead(t).strays)
	}
}

// The folder is removed while a writer stands still, and made anew by another.
func TestAWriterWhoseFolderWasReplacedHasNoEffect(t *testing.T) {
	f := newFolder(t)
	var now sheet
	err := f.turn(f.mustRead(t), turn{text: []byte("late"), still: func() error {
		require.NoError(t, os.RemoveAll(f.path))
		require.NoError(t, f.found())
		now = f.mustRead(t)
		return nil
	}})
	require.ErrorIs(t, err, errTurned)
	require.Equal(t, now, f.mustRead(t))
}

// A writer that has died left its page. One that is still at work is left alone.
func TestAWriteSweepsThePagesOfTheDeadOnly(t *testing.T) {
	f := newFolder(t)
	dead := rand.Text()
	require.NoError(t, f.put(dead, turn{text: []byte("dead")}))
	found := f.mustRead(t)
	require.Equal(t, []string{dead}, found.strays)
	working := rand.Text()
	require.NoError(t, f.put(working, turn{text: []byte("working")}))
	require.NoError(t, f.turn(found, turn{text: []byte("t"), still: always}))
	require.Equal(t, []string{working}, f.mustRead(t).strays)
}

// No lock is involved here.
func TestManyWritersTurnEachPageOnce(t *testing.T) {
	const writers, writes = 8, 60
	f := newFolder(t)
	first := f.mustRead(t).number
	turned := make(chan uint64, writers*writes)
	var crowd sync.WaitGroup
	for w := range writers {
		crowd.Go(func() {
			for n := 0; n < writes; {
				found, err := f.read()
				if err == nil {
					text := []byte("a page of some length")
					err = f.turn(found, turn{text: text[:(w+n)%len(text)], still: always})
				}
				switch {
				case err == nil:
					turned <- found.number + 1
					n++
				case errors.Is(err, errTurned):
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	crowd.Wait()
	close(turned)
	seen := make(map[uint64]bool)
	for number := range turned {
		require.False(t, seen[number], "page %d was turned to twice", number)
		seen[number] = true
	}
	require.Equal(t, first+writers*writes, f.mustRead(t).number)
	require.Empty(t, f.mustRead(t).strays)
}

func TestTwoFoundersBeginWithOneHead(t *testing.T) {
	f := newFolder(t)
	before := f.mustRead(t)
	require.NoError(t, f.found())
	require.Equal(t, before, f.mustRead(t))
	temps, err := os.ReadDir(f.temps)
	require.NoError(t, err)
	require.Empty(t, temps)
}

func TestAFolderThatWasEmptiedByHandBeginsAnew(t *testing.T) {
	f := newFolder(t)
	before := f.mustRead(t)
	require.NoError(t, os.Remove(filepath.Join(f.path, head(before.number, ""))))
	require.Zero(t, f.mustRead(t))
	require.NoError(t, f.found())
	require.NoDirExists(t, f.path)
	require.NoError(t, f.found())
	require.Greater(t, f.mustRead(t).number, before.number)
}

// Somebody has copied old files back.
func TestTheHighestHeadCounts(t *testing.T) {
	f := newFolder(t)
	old := f.mustRead(t)
	require.NoError(t, f.turn(old, turn{text: []byte("t"), still: always}))
	now := f.mustRead(t)
	require.NoError(t, os.WriteFile(filepath.Join(f.path, head(old.number, old.page)), nil, 0o600))
	require.Equal(t, now, f.mustRead(t))
}

func TestAFolderThatHasLostItsHeadSaysSo(t *testing.T) {
	f := newFolder(t)
	require.NoError(t, f.turn(f.mustRead(t), turn{text: []byte("t"), still: always}))
	found := f.mustRead(t)
	require.NoError(t, os.Remove(filepath.Join(f.path, head(found.number, found.page))))
	require.Zero(t, f.mustRead(t).number)
	require.ErrorContains(t, f.found(), f.path+" has files but no head")
}

// A create that was refused writes down what it saw while somebody removes the folder.
func TestAFolderInWhichOnlySightingsAreLeftIsVacant(t *testing.T) {
	s, err := New(t.TempDir(), nil)
	require.NoError(t, err)
	rec, err := s.Create(t.Context(), "n", kv.Record{Signature: "s", TTL: time.Minute})
	require.NoError(t, err)
	f, err := s.folder("n")
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(f.path))
	require.NoError(t, os.Mkdir(f.path, 0o700))
	for _, clock := range []string{"one", "another"} {
		require.NoError(t, f.note(filepath.Join(f.path, sightingPrefix+clock), rec.Token, time.Second))
	}
	_, err = s.Get(t.Context(), "n")
	require.ErrorIs(t, err, kv.ErrVacant)
	next, err := s.Create(t.Context(), "n", kv.Record{Signature: "t", TTL: time.Minute})
	require.NoError(t, err)
	require.Greater(t, next.Token, rec.Token)
	require.Empty(t, f.mustRead(t).strays)

	found := f.mustRead(t)
	require.NoError(t, f.note(filepath.Join(f.path, sightingPrefix+"one"), next.Token, time.Second))
	require.NoError(t, os.Remove(filepath.Join(f.path, head(found.number, found.page))))
	require.ErrorContains(t, f.found(), "has files but no head", "a page is not swept away")
	require.FileExists(t, filepath.Join(f.path, found.page))
}

func TestAWriterThatChangesItsMindLeavesNothing(t *testing.T) {
	f := newFolder(t)
	before, no := f.mustRead(t), errors.New("no")
	err := f.turn(before, turn{text: []byte("t"), still: func() error { return no }})
	require.ErrorIs(t, err, no)
	require.Equal(t, before, f.mustRead(t))
	temps, err := os.ReadDir(f.temps)
	require.NoError(t, err)
	require.Empty(t, temps)
}

func TestNamesBecomeFileNamesOneToOne(t *testing.T) {
	require.Equal(t, "jobs%2fnightly.v2-a_b", shorten(escape("jobs/nightly.v2-a_b")))
	require.Equal(t, "%4e", escape("N"))
	require.Equal(t, "%2e%2e", escape(".."))
	long := strings.Repeat("n", maxName)
	seen := map[string]string{}
	for _, name := range []string{"a", "A", "%61", ".", "..", "a.", ".a", "a/b", "\x00", "\xff", long, long[1:], long[1:] + "m", escape("/"), "~"} {
		file := shorten(escape(name))
		require.Empty(t, seen[file], "%.20q and %.20q", name, seen[file])
		require.LessOrEqual(t, len(file), 255)
		require.Regexp(t, `^[a-z0-9_%~-]([a-z0-9_%~.-]*[a-z0-9_%~-])?$`, file)
		seen[file] = name
	}
}
