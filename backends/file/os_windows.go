package filekv

import (
	"os"
	"time"

	"golang.org/x/sys/windows"
)

const (
	errNotEmpty = windows.ERROR_ACCESS_DENIED // a rename onto a folder
	errNotDir   = windows.ERROR_DIRECTORY
	errLoop     = windows.ERROR_CANT_RESOLVE_FILENAME
)

// feelFlag opens a life file.
const feelFlag = os.O_RDONLY

// sinceBoot reads the tick count, which counts time asleep and cannot be set.
func sinceBoot() (time.Duration, error) { return windows.DurationSinceBoot(), nil }

// clockName names no boot, as the system has no cheap name for one. After a
// restart the life files are unlocked, which is enough on a drive of this machine.
func clockName() (string, error) { return "windows", nil }

// queueFile returns what writers lock to queue up at a folder. Folders cannot be
// locked on this system.
func queueFile(folder string) (path string, flag int) {
	return folder + ".queue", os.O_CREATE | os.O_RDWR
}

// syncDir does nothing: folders cannot be synced on this system.
func syncDir(string) error { return nil }
