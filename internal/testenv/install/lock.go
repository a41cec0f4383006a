//go:build unix

package install

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// lock keeps all other processes from what a file stands for, with flock(2), until the
// function that it returns is called. While another process has it, it waits, until ctx
// ends.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(err, file.Close())
		}
		again := time.NewTimer(100 * time.Millisecond)
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return nil, errors.Join(ctx.Err(), file.Close())
		}
	}
}
