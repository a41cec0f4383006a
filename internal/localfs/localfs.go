// Package localfs tells whether a directory is on a file system that one kernel alone
// has mounted, so that its processes see each other's locks.
//
// It allows the kinds that are known to be local, and no others: no list of shared file systems
// is complete, and each of two kernels without a common lock works as if it were
// alone.
package localfs

import "fmt"

// A Kind is a kind of file system.
type Kind struct {
	Name  string // for people: "ext4", "fuse.sshfs", "type 0x6969"
	Local bool   // it is known to be local
}

// Refusal returns why a directory of this kind is refused, or nil. The insist says how a user
// can allow it all the same.
func (k Kind) Refusal(insist string) error {
	if k.Local {
		return nil
	}
	return fmt.Errorf("it is on a file system of the kind %s, which is not known to be local: another kernel may have it too, and locks of one may mean nothing to the other; use a directory on a disk of this host, or, if one kernel alone mounts it, %s", k.Name, insist)
}
