package filekv

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/gofrs/flock"
)

const (
	// patience is how long a writer waits for those before it.
	patience = 200 * time.Millisecond
	// queueStep is how often it looks.
	queueStep = 2 * time.Millisecond
)

// queue waits until no other writer is at work on the folder, and returns a
// function with which the caller leaves the queue.
//
// The queue keeps order among writers, so that of fifty candidates one writes
// and the others find the safe held. It keeps nobody safe (folder.turn does), so
// a writer that has waited for patience goes on: the writer in front may be stopped.
func (f folder) queue(ctx context.Context) (leave func() error, err error) {
	path, flag := queueFile(f.path)
	lock := flock.New(path, flock.SetFlag(flag), flock.SetPermissions(f.modes.file))
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ok, err := lock.TryLockContext(wait, queueStep)
	switch {
	case ok:
		return lock.Close, nil
	case ended(ctx) != nil:
		return nil, ended(ctx)
	case wait.Err() != nil, isNoFolder(err):
		return func() error { return nil }, nil
	}
	return nil, err
}

// isNoFolder reports whether there is nothing to queue up at: no folder yet, or
// something else has its name.
func isNoFolder(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotDir) || errors.Is(err, errLoop)
}

// isTaken reports whether a folder could not be renamed because the name is
// taken by one with pages.
func isTaken(err error) bool {
	return errors.Is(err, fs.ErrExist) || errors.Is(err, errNotEmpty)
}
