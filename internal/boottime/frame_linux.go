package boottime

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// Here returns the frame of this process at this moment. It is read anew each time:
// a process that is restored from a checkpoint wakes up in another frame.
func Here() (Frame, error) {
	boot, err := bootID()
	if err != nil {
		return Frame{}, fmt.Errorf("name this boot of the host: %w", err)
	}
	space, err := namespace()
	if err != nil {
		return Frame{}, fmt.Errorf("name this time namespace: %w", err)
	}
	return Frame{Boot: boot, Space: space}, nil
}

// bootID reads the id with three system calls, as every operation of a store asks.
func bootID() (string, error) {
	const path = "/proc/sys/kernel/random/boot_id"
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return "", &fs.PathError{Op: "open", Path: path, Err: err}
	}
	text := make([]byte, 64)
	n, err := syscall.Read(fd, text)
	if err = errors.Join(err, syscall.Close(fd)); err != nil {
		return "", &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return strings.TrimSpace(string(text[:n])), nil
}

// hosts is the time namespace that a host begins with, and whose clock is not shifted:
// PROC_TIME_INIT_INO in the kernel's proc_ns.h.
const hosts = "time:[4026531834]"

// namespace names the time namespace (time_namespaces(7)). The kernel gives the number
// of one that has gone to a new one, so the offset belongs to the name.
func namespace() (string, error) {
	space, err := os.Readlink("/proc/self/ns/time")
	if errors.Is(err, fs.ErrNotExist) { // a kernel without time namespaces
		return "", nil
	}
	if err != nil || space == hosts {
		return space, err
	}
	if children, err := os.Readlink("/proc/self/ns/time_for_children"); err != nil || children != space {
		return space, err // the offsets are those of the children
	}
	offsets, err := os.ReadFile("/proc/self/timens_offsets")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(offsets)) {
		fields := strings.Fields(line)
		if len(fields) == 3 && (fields[0] == "boottime" || fields[0] == "7") && fields[1]+fields[2] != "00" {
			space += " " + fields[1] + "." + fields[2]
		}
	}
	return space, nil
}
