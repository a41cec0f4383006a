package stores

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
)

// Default returns the URL of the store that needs no server: a directory for this
// user's processes, "elect" in $XDG_STATE_HOME or else in ~/.local/state, the same for
// a login, cron and a service. It makes the directory if need be, with mode 0700, and
// refuses one that belongs to somebody else.
func Default(getenv func(string) string) (string, error) { return defaultURL(getenv, private) }

// DefaultToRead returns the same, and makes nothing.
func DefaultToRead(getenv func(string) string) (string, error) {
	return defaultURL(getenv, func(dir string) error {
		err := isPrivate(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // nobody has used it yet
		}
		return err
	})
}

func defaultURL(getenv func(string) string, check func(dir string) error) (string, error) {
	state, err := stateDir(getenv)
	dir := filepath.Join(state, "elect")
	if err == nil {
		err = check(dir)
	}
	if err != nil {
		return "", fmt.Errorf("the default store: %w; name another with --store or ELECT_STORE", err)
	}
	return File(dir), nil
}

// stateDir returns where the user's programs keep what outlives a logout.
func stateDir(getenv func(string) string) (string, error) {
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return dir, nil
	}
	home, err := homeDir(getenv)
	return filepath.Join(home, ".local", "state"), err
}

// homeDir returns the user's home: $HOME or, where that is not set, as in many a
// service, or is somebody else's, as under sudo, what the user database says.
func homeDir(getenv func(string) string) (string, error) {
	if dir := getenv("HOME"); filepath.IsAbs(dir) && filepath.Dir(dir) != dir {
		if info, err := os.Stat(dir); err == nil && isMine(info) {
			return dir, nil
		}
	}
	me, err := user.LookupId(strconv.Itoa(os.Getuid()))
	if err == nil && filepath.IsAbs(me.HomeDir) {
		return me.HomeDir, nil
	}
	dir, otherwise := os.UserHomeDir() // where user ids are no numbers
	if otherwise != nil || !filepath.IsAbs(dir) {
		return "", fmt.Errorf("there is no home directory of this user: HOME is not one of its own, and the user database has none: %w", errors.Join(err, otherwise))
	}
	return dir, nil
}

// FormerDefault returns the directory that was the default store before it was in the
// state directory, or nothing if it is not there any more: candidates of those versions use it.
func FormerDefault(getenv func(string) string) string {
	uid := strconv.Itoa(os.Getuid())
	for _, dir := range []string{
		filepath.Join(getenv("XDG_RUNTIME_DIR"), "elect"), filepath.Join("/run/user", uid, "elect"), filepath.Join(os.TempDir(), "elect-"+uid),
	} {
		if info, err := os.Stat(filepath.Join(dir, "safes")); filepath.IsAbs(dir) && err == nil && isMine(info) {
			return dir
		}
	}
	return ""
}

// private sees to it that dir is a directory that nobody else can write to.
func private(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return isPrivate(dir)
}

// isPrivate refuses what is not such a directory.
func isPrivate(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case !isMine(info):
		return fmt.Errorf("%s belongs to another user", dir)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s is open to other users: its mode is %v, not 0700", dir, info.Mode().Perm())
	}
	return nil
}
