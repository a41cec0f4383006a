package fence_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/fence"
)

// reopen opens the fence at path, and closes it with the test.
func reopen(t *testing.T, path string) *fence.Fence {
	t.Helper()
	f, err := fence.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

// kept returns what a new process would find at path.
func kept(t *testing.T, path string) uint64 {
	t.Helper()
	f, err := fence.Open(path)
	require.NoError(t, err)
	defer f.Close()
	return f.Largest()
}

// list returns the names in a folder.
func list(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestARestartRemembersTheLargestToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fence")
	for _, token := range []uint64{1, 7, 1 << 63, 1<<64 - 1} {
		f, err := fence.Open(path)
		require.NoError(t, err)
		require.NoError(t, f.Do(token, nothing))
		require.NoError(t, f.Close())
		require.Equal(t, token, kept(t, path))
	}
	f := reopen(t, path)
	require.ErrorIs(t, f.Do(1<<63, nothing), fence.ErrStale)
	require.NoError(t, f.Do(1<<64-1, nothing), "the same term goes on after a restart of the service")
	require.Equal(t, "fence fence.lock", list(t, filepath.Dir(path)))
}

func TestTheFileSaysWhatItIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fence")
	require.NoError(t, reopen(t, path).Admit(42))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "election fence 1: token 42, crc32 3224b088\n", string(text), "promised to the byte")
}

func TestAFenceIsOpenOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "fence")
	first := reopen(t, path)
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(path, link))
	for _, again := range []string{path, link, filepath.Join(dir, ".", "fence")} {
		_, err := fence.Open(again)
		require.ErrorIs(t, err, fence.ErrInUse)
		require.ErrorContains(t, err, "share the fence")
	}
	require.NoError(t, first.Admit(3), "the first is none the worse")
	require.NoError(t, first.Close())
	require.EqualValues(t, 3, kept(t, link))
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink, "the link is still one")
}

func TestDamageIsNeverTakenForZero(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good")
	require.NoError(t, reopen(t, good).Admit(1234567))
	text, err := os.ReadFile(good)
	require.NoError(t, err)

	damaged := map[string]string{
		"empty":             "",
		"of something else": "{\"token\":3}\n",
		"of the future":     strings.Replace(string(text), "fence 1", "fence 2", 1),
		"longer":            string(text) + "x",
		"written twice":     string(text) + string(text),
		"very long":         strings.Repeat("x", 1<<20),
		"zeros":             strings.Repeat("\x00", len(text)),
		"plus sign":         strings.Replace(string(text), "token ", "token +", 1),
	}
	for n := range text {
		damaged["cut off at "+string(text[:n])] = string(text[:n])
		flipped := []byte(string(text))
		flipped[n] ^= 1
		damaged["flipped: "+string(flipped)] = string(flipped)
	}
	path := filepath.Join(dir, "fence")
	for what, text := range damaged {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := fence.Open(path)
		require.ErrorContains(t, err, path+" is damaged, or not the file of a fence", what)
		require.ErrorContains(t, err, "put back the backup", "what to do about it")
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, text, string(after), "left as it was found")
	}
	require.NoError(t, os.Remove(path))
	require.NoError(t, reopen(t, path).Admit(9), "a refusal leaves nothing locked")
}

func TestWhatIsNoFileIsRefusedAndNothingIsMade(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	folder, dangling := filepath.Join(dir, "folder"), filepath.Join(dir, "dangling")
	require.NoError(t, os.Mkdir(folder, 0o700))
	require.NoError(t, os.Symlink(filepath.Join(dir, "not", "mounted"), dangling))
	require.NoError(t, os.Symlink(folder, filepath.Join(dir, "link")))
	for path, want := range map[string]string{
		"":                                     "no path: want that of the file",
		".":                                    "no regular file",
		folder:                                 "no regular file",
		folder + "/":                           "no regular file",
		"link":                                 "no regular file",
		os.DevNull:                             "no regular file",
		dangling:                               "a symbolic link to a file that is not there",
		filepath.Join(dir, "missing", "fence"): "no such file",
		"new/":                                 "no such file",
	} {
		_, err := fence.Open(path)
		require.ErrorContains(t, err, want, "%q", path)
		require.Equal(t, "dangling folder link", list(t, dir), "%q", path)
		require.Empty(t, list(t, folder), "%q", path)
	}
	_, err := fence.Open(filepath.Join(dir, "missing", "fence"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestWhatACrashLeftBehindIsNoTokenAndNoHindrance(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "fence")
	for _, left := range []string{"", "election fen", "election fence 1: token 99, crc32 08e2962a\n"} {
		require.NoError(t, os.WriteFile(path+".new", []byte(left), 0o400))
		f, err := fence.Open(path)
		require.NoError(t, err)
		require.Less(t, f.Largest(), uint64(10), "what was never renamed was never admitted")
		require.NoError(t, f.Admit(f.Largest()+1))
		require.NoError(t, f.Close())
		require.Equal(t, "fence fence.lock", list(t, dir))
	}
}
