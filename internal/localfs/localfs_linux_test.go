package localfs_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/electkv/election/internal/localfs"
)

// roleVariable has this test binary, started anew, mount a file system and say what
// kind it is.
const roleVariable = "LOCALFS_TEST_MOUNT"

func TestMain(m *testing.M) {
	if kind := os.Getenv(roleVariable); kind != "" {
		if err := mountAndTell(kind, os.Args[1]); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func mountAndTell(kind, dir string) error {
	source, data, serve := "none", "", func() {}
	switch {
	case strings.HasPrefix(kind, "fuse"):
		fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		data = fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fd)
		serve = func() { go serveFUSE(fd) } // there is nothing to read before it is mounted
	case kind == "overlay":
		for _, sub := range []string{"lower", "upper", "work", "merged"} {
			if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
				return err
			}
		}
		data = fmt.Sprintf("lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work", dir, dir, dir)
		dir = filepath.Join(dir, "merged")
	}
	if err := unix.Mount(source, dir, kind, 0, data); err != nil {
		return fmt.Errorf("mount %s: %w", kind, err)
	}
	serve()
	found, err := localfs.Of(dir)
	fmt.Println(found.Name, found.Local)
	return errors.Join(err, unix.Unmount(dir, unix.MNT_DETACH))
}

// serveFUSE is as much of a FUSE server as statfs(2) on the root needs.
func serveFUSE(fd int) {
	const opGetattr, opStatfs, opInit, opAccess = 3, 17, 26, 34
	in := make([]byte, 1<<16)
	for {
		n, err := unix.Read(fd, in)
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.ENOENT) { // a signal, or a request that was given up
			continue
		}
		if err != nil || n < 40 {
			return
		}
		var body []byte
		code := int32(0)
		switch binary.NativeEndian.Uint32(in[4:]) {
		case opInit:
			body = make([]byte, 64)
			binary.NativeEndian.PutUint32(body, 7)
			binary.NativeEndian.PutUint32(body[4:], 31)
			binary.NativeEndian.PutUint32(body[20:], 4096) // max_write
		case opGetattr:
			body = make([]byte, 16+88)
			binary.NativeEndian.PutUint64(body[16:], 1)           // ino
			binary.NativeEndian.PutUint32(body[16+60:], 0o040755) // mode
			binary.NativeEndian.PutUint32(body[16+64:], 2)        // nlink
		case opStatfs:
			body = make([]byte, 80)
		case opAccess:
		default:
			code = -int32(unix.ENOSYS)
		}
		out := make([]byte, 16, 16+len(body))
		binary.NativeEndian.PutUint32(out, uint32(16+len(body)))
		binary.NativeEndian.PutUint32(out[4:], uint32(code))
		copy(out[8:], in[8:16])                     // which request it answers
		_, _ = unix.Write(fd, append(out, body...)) // it may have been given up
	}
}

// mounted returns what Of says of a file system that is mounted in a namespace of its
// own.
func mounted(t *testing.T, kind string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may be sure to mount")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", "--map-root-user", "--mount", self, t.TempDir())
	cmd.Env = append(os.Environ(), roleVariable+"="+kind)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.TrimSpace(string(out))
}

func TestWhatAnotherKernelMayHaveTooIsNamedAndNotLocal(t *testing.T) {
	for _, kind := range []string{"fuse.sshfs", "fuse.glusterfs", "fuse"} {
		require.Equal(t, kind+" false", mounted(t, kind))
	}
	kind, err := localfs.Of("/proc") // nobody keeps anything there
	require.NoError(t, err)
	require.Equal(t, localfs.Kind{Name: "proc"}, kind)
}

func TestWhatOneKernelMountsIsLocal(t *testing.T) {
	require.Equal(t, "tmpfs true", mounted(t, "tmpfs"))
	require.Equal(t, "overlayfs true", mounted(t, "overlay"))
	kind, err := localfs.Of(t.TempDir())
	require.NoError(t, err)
	require.True(t, kind.Local, "%v", kind)
	require.NoError(t, kind.Refusal("insist"))
}

func TestARefusalNamesTheKindAndTheWayToInsist(t *testing.T) {
	err := localfs.Kind{Name: "fuse.sshfs"}.Refusal("say so")
	require.ErrorContains(t, err, "fuse.sshfs")
	require.ErrorContains(t, err, "say so")
}

func TestADirectoryThatIsMissingIsOfNoKind(t *testing.T) {
	_, err := localfs.Of(filepath.Join(t.TempDir(), "missing"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
