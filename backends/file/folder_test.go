package filekv

import (
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func newFolder(t *testing.T) folder {
	t.Helper()
	s, err := New(t.TempDir())
	require.NoError(t, err)
	f, err := s.folder("n")
	require.NoError(t, err)
	require.NoError(t, f.found())
	return f
}

func (f folder) mustLast(t *testing.T) sheet {
	t.Helper()
	last, err := f.last()
	require.NoError(t, err)
	return last
}

func always() error { return nil }

func TestOneOfTwoWritersTurnsThePage(t *testing.T) {
	f := newFolder(t)
	from := f.mustLast(t).number
	err := f.add(from, turn{text: []byte("second"), still: func() error {
		return f.add(from, turn{text: []byte("first"), still: always})
	}})
	require.ErrorIs(t, err, errTurned)
	require.Equal(t, sheet{number: from + 1, text: []byte("first")}, f.mustLast(t))
}

// While a writer stands still just before its link, others write so often that
// the number it wants is free again.
func TestAWriterThatWasStoppedBeforeItsLinkHasNoEffect(t *testing.T) {
	for _, writes := range []uint64{2, 3, 7} {
		f := newFolder(t)
		from := f.mustLast(t).number
		err := f.add(from, turn{text: []byte("late"), still: func() error {
			for i := range writes {
				require.NoError(t, f.add(from+i, turn{text: []byte("others"), still: always}))
			}
			return nil
		}})
		require.ErrorIs(t, err, errOvertaken, "after %d writes", writes)
		require.Equal(t, sheet{number: from + writes, text: []byte("others")}, f.mustLast(t))
		pages, err := f.pages()
		require.NoError(t, err)
		require.Len(t, pages, 1, "the late page is gone")
	}
}

// The folder is removed while a writer stands still, and made anew by another.
func TestAWriterWhoseFolderWasReplacedHasNoEffect(t *testing.T) {
	f := newFolder(t)
	from := f.mustLast(t).number
	var now sheet
	err := f.add(from, turn{text: []byte("late"), still: func() error {
		require.NoError(t, os.RemoveAll(f.path))
		require.NoError(t, f.found())
		now = f.mustLast(t)
		require.Greater(t, now.number, from+1)
		return nil
	}})
	require.ErrorIs(t, err, errOvertaken)
	require.Equal(t, now, f.mustLast(t))
}

// No lock is involved here.
func TestManyWritersAddEachPageOnce(t *testing.T) {
	const writers, writes = 8, 60
	f := newFolder(t)
	first := f.mustLast(t).number
	added := make(chan uint64, writers*writes)
	var crowd sync.WaitGroup
	for range writers {
		crowd.Go(func() {
			for n := 0; n < writes; {
				last, err := f.last()
				if err == nil {
					err = f.add(last.number, turn{text: []byte("t"), still: always})
				}
				switch {
				case err == nil:
					added <- last.number + 1
					n++
				case errors.Is(err, errTurned), errors.Is(err, errOvertaken):
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	crowd.Wait()
	close(added)
	seen := make(map[uint64]bool)
	for number := range added {
		require.False(t, seen[number], "page %d was added twice", number)
		seen[number] = true
	}
	require.GreaterOrEqual(t, f.mustLast(t).number, first+writers*writes)
}

func TestTwoFoundersBeginWithOnePage(t *testing.T) {
	f := newFolder(t)
	before := f.mustLast(t)
	require.NoError(t, f.found())
	require.Equal(t, before, f.mustLast(t))
	temps, err := os.ReadDir(f.temps)
	require.NoError(t, err)
	require.Empty(t, temps)
}

func TestAWriterThatChangesItsMindLeavesNothing(t *testing.T) {
	f := newFolder(t)
	before, no := f.mustLast(t), errors.New("no")
	require.ErrorIs(t, f.add(before.number, turn{still: func() error { return no }}), no)
	require.Equal(t, before, f.mustLast(t))
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
