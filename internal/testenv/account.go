//go:build unix

package testenv

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// An account is a user of this machine other than the one who runs the tests.
// Database servers refuse root.
type account struct {
	uid, gid uint32
}

// accountFor returns the first of the named users that this machine has, or
// nobody, for root; and nil, which means the caller, for everybody else.
func accountFor(names ...string) (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // nil is the caller
	}
	for _, name := range append(names, "nobody") {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, err
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return nil, err
		}
		return &account{uid: uint32(uid), gid: uint32(gid)}, nil
	}
	return nil, fmt.Errorf("there is none of the users %s, nobody to run a server that refuses root", strings.Join(names, ", "))
}

// attributes makes a process run as the account.
func (a *account) attributes(attr *syscall.SysProcAttr) {
	if a != nil {
		attr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
}

// give makes everything in dir, and dir itself, the account's.
func (a *account) give(dir string) error {
	if a == nil {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(a.uid), int(a.gid))
	})
}

// run carries out a command as the account, with home for its working folder and
// nothing of the environment but the path.
func (a *account) run(home, program string, args ...string) error {
	g, err := theGuard()
	if err != nil {
		return err
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = home
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "LC_ALL=C"}
	cmd.SysProcAttr = g.attributes()
	a.attributes(cmd.SysProcAttr)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(program), err, text)
	}
	return nil
}
