//go:build unix

package testenv

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A Disk is a file system of the test's own, in memory.
type Disk struct {
	t    testing.TB
	path string
}

// CanMount returns nil if [SmallDisk] works here, or else why not: it needs
// Linux and root.
func CanMount() error {
	path, err := mountSmall(1 << 20)
	if err != nil {
		return err
	}
	return unmount(path)
}

// SmallDisk makes a disk that holds so many bytes, rounded up to whole pages,
// and is empty. It ends with the test. For anybody but root it skips the test; it fails it
// where there can be none for root: see [CanMount].
func SmallDisk(t testing.TB, bytes int64) *Disk {
	t.Helper()
	needRoot(t)
	path, err := mountSmall(bytes)
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	t.Cleanup(func() {
		if err := unmount(path); err != nil {
			t.Errorf("testenv: %v", err)
		}
	})
	return &Disk{t: t, path: path}
}

// mountSmall mounts a disk below the guard's folder, so that the guard unmounts
// it if nobody else does.
func mountSmall(bytes int64) (string, error) {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		return "", errors.New("disk: small ones are to be had as root on Linux only")
	}
	g, err := theGuard()
	if err != nil {
		return "", err
	}
	path, err := os.MkdirTemp(g.dir, "disk-")
	if err != nil {
		return "", err
	}
	return path, run("", "mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%d,mode=700", bytes), "election-test", path)
}

// unmount takes the disk away. What still has files open there keeps them.
func unmount(path string) error {
	return errors.Join(run("", "umount", "--lazy", path), os.Remove(path))
}

// Path returns the folder in which the disk is.
func (d *Disk) Path() string { return d.path }

// filling is the file that takes the room.
func (d *Disk) filling() string { return filepath.Join(d.path, ".filling") }

// Fill takes all the room that is left: writes fail with ENOSPC.
func (d *Disk) Fill() {
	d.t.Helper()
	f, err := os.OpenFile(d.filling(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil && !errors.Is(err, syscall.ENOSPC) {
		d.t.Fatalf("testenv: %v", err)
	}
	defer f.Close()
	for err == nil {
		_, err = io.Copy(f, io.LimitReader(zeros{}, 1<<20))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		d.t.Fatalf("testenv: %v", err)
	}
}

// Free gives the room back that Fill took, even while somebody has its file open.
func (d *Disk) Free() {
	d.t.Helper()
	if err := errors.Join(os.Truncate(d.filling(), 0), os.Remove(d.filling())); err != nil {
		d.t.Fatalf("testenv: %v", err)
	}
}

// ReadOnly lets nothing more be written: it fails with EROFS. The kernel refuses
// that while a file is open for writing; it is tried for a few seconds.
func (d *Disk) ReadOnly() { d.t.Helper(); d.remount("ro") }

// Writable ends ReadOnly.
func (d *Disk) Writable() { d.t.Helper(); d.remount("rw") }

func (d *Disk) remount(mode string) {
	d.t.Helper()
	end := time.Now().Add(10 * time.Second)
	for {
		err := run("", "mount", "-o", "remount,"+mode, d.path)
		if err == nil {
			return
		}
		if !strings.Contains(err.Error(), "busy") || time.Now().After(end) {
			d.t.Fatalf("testenv: %v", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
