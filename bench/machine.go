package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A machine is what results were measured on.
type machine struct {
	System    string // and its release
	Processor string
	Cores     int
	Memory    uint64 // bytes
	Disk      string // the file system that servers write to
	Sync      string // how long a write of 4 KiB and an fdatasync take there
	Go        string
}

func thisMachine() (machine, error) {
	m := machine{Cores: runtime.NumCPU(), Go: runtime.Version(), Processor: field("/proc/cpuinfo", "model name")}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return m, os.NewSyscallError("uname", err)
	}
	m.System = unix.ByteSliceToString(name.Sysname[:]) + " " + unix.ByteSliceToString(name.Release[:])
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return m, os.NewSyscallError("sysinfo", err)
	}
	m.Memory = info.Totalram * uint64(info.Unit)
	var err error
	if m.Disk, err = fileSystem(os.TempDir()); err != nil {
		return m, err
	}
	m.Sync, err = syncTime()
	return m, err
}

// fileSystem names the kind of file system that a folder is on.
func fileSystem(folder string) (string, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(folder, &stat); err != nil {
		return "", os.NewSyscallError("statfs", err)
	}
	switch stat.Type {
	case unix.EXT4_SUPER_MAGIC:
		return "ext4", nil
	case unix.TMPFS_MAGIC:
		return "tmpfs (memory: a sync costs nothing)", nil
	case unix.XFS_SUPER_MAGIC:
		return "xfs", nil
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs", nil
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlayfs", nil
	}
	return fmt.Sprintf("file system of type %#x", stat.Type), nil
}

// syncTime measures what one commit costs the disk.
func syncTime() (string, error) {
	file, err := os.CreateTemp("", "election-bench-")
	if err != nil {
		return "", err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	var took []float64
	for range 100 {
		began := now()
		if _, err := file.Write(make([]byte, 4096)); err != nil {
			return "", err
		}
		if err := unix.Fdatasync(int(file.Fd())); err != nil { //nolint:gosec // a file descriptor fits
			return "", os.NewSyscallError("fdatasync", err)
		}
		took = append(took, (now() - began).Seconds())
	}
	s := summarize(took)
	return fmt.Sprintf("%s (%s to %s)", format(s.Median, seconds), format(s.P10, seconds), format(s.P90, seconds)), nil
}

// field finds a value in a text of lines like "name : value".
func field(path, name string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}

// peerVersions are those of the libraries that are compared, and of the clients below
// this one.
func peerVersions() map[string]string {
	versions := make(map[string]string)
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return versions
	}
	wanted := " " + strings.Join([]string{
		"go.etcd.io/etcd/client/v3", "github.com/hashicorp/consul/api", "github.com/go-redsync/redsync/v4", "github.com/bsm/redislock",
		"github.com/redis/rueidis", "github.com/redis/go-redis/v9", "k8s.io/client-go",
	}, " ") + " "
	for _, dep := range info.Deps {
		if strings.Contains(wanted, " "+dep.Path+" ") {
			versions[dep.Path] = dep.Version
		}
	}
	return versions
}

// commitOf tells which commit a folder's source is, and whether it was changed since.
func commitOf(ctx context.Context, folder string) (commit string, changed bool) {
	git := func(args ...string) string {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		text, err := exec.CommandContext(ctx, "git", append([]string{"-C", folder}, args...)...).Output()
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(text))
	}
	commit = git("rev-parse", "HEAD")
	if commit == "" {
		return "unknown", false
	}
	// What the bench has written itself is no change.
	return commit, git("status", "--porcelain", "--", ".", ":!bench/results", ":!bench/RESULTS.md") != ""
}
