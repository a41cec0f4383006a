package guard

import (
	"bytes"
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// checkProc returns an error unless /proc shows this process's PID namespace. In
// another one's, process ids mean other processes.
func checkProc() error {
	var fs unix.Statfs_t
	if err := unix.Statfs("/proc", &fs); err != nil || fs.Type != unix.PROC_SUPER_MAGIC {
		return errors.New("/proc is not mounted, so COMMAND's descendants could not be found and stopped; " +
			"use mount -t proc proc /proc")
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil || !isOwn(status) {
		return errors.New("/proc shows the processes of another PID namespace, so COMMAND's descendants could not be found and stopped; " +
			"use unshare --mount-proc, or mount -t proc proc /proc in the namespace")
	}
	return nil
}

// isOwn reports whether a proc_pid_status(5) of this process was read in its own PID
// namespace: NSpid has its id in the namespace of /proc and in each one below, down
// to its own. The same id in two of them proves nothing. Where there is no NSpid
// there are no PID namespaces.
func isOwn(status []byte) bool {
	pid := []byte(strconv.Itoa(os.Getpid()))
	for line := range bytes.Lines(status) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch string(name) {
		case "Pid":
			if !bytes.Equal(bytes.TrimSpace(value), pid) {
				return false
			}
		case "NSpid":
			if len(bytes.Fields(value)) != 1 {
				return false
			}
		}
	}
	return true
}
