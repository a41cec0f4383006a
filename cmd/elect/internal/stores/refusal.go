package stores

import (
	"errors"
	"io/fs"
	"net"
	"slices"
	"syscall"

	"github.com/electkv/election/kv"
)

// An away is an error of Open that may pass: a server that has to be asked did not
// answer.
type away struct{ error }

func (a away) Unwrap() error { return a.error }

// IsAway reports whether an error of Open or Join may pass: a server that has to be
// asked first did not answer.
func IsAway(err error) bool {
	_, ok := errors.AsType[away](err)
	return ok
}

// IsRefusal reports whether an error of an open store is one that waiting does not
// change, for sure: somebody answered, and said no. That is so of credentials and
// permissions that do not do, of what the URL names and is not there, and of TTLs
// and names that the store never takes. Not so of servers that are starting, have no
// leader or take no writes at the moment.
func IsRefusal(err error) bool {
	return errors.Is(err, kv.ErrInvalid) || isMissing(err) ||
		slices.ContainsFunc(kinds(), func(k kind) bool { return k.refuses != nil && k.refuses(err) })
}

// isMissing reports whether a file is not there, or not for this user. A socket that
// is not there belongs to a server that has not started.
func isMissing(err error) bool {
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return false
	}
	return slices.ContainsFunc([]error{fs.ErrNotExist, fs.ErrPermission, syscall.ENOTDIR, syscall.EROFS}, func(no error) bool { return errors.Is(err, no) })
}
