package localfs

import (
	"path/filepath"

	"golang.org/x/sys/windows"
)

// Of returns the kind of drive that path is on. What is no drive of this machine, such
// as a share, is not local.
func Of(path string) (Kind, error) {
	root, err := windows.UTF16PtrFromString(filepath.VolumeName(path) + `\`)
	if err != nil {
		return Kind{}, err
	}
	switch windows.GetDriveType(root) {
	case windows.DRIVE_FIXED:
		return Kind{Name: "fixed drive", Local: true}, nil
	case windows.DRIVE_RAMDISK:
		return Kind{Name: "memory", Local: true}, nil
	case windows.DRIVE_REMOVABLE:
		return Kind{Name: "removable drive", Local: true}, nil
	case windows.DRIVE_REMOTE:
		return Kind{Name: "network drive"}, nil
	}
	return Kind{Name: "unknown drive"}, nil
}
