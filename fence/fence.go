package fence

import (
	"errors"
	"fmt"
	"os"
	"sync"
)

var (
	// ErrStale means that a larger token was admitted before: the sender of the
	// smaller one no longer leads. [StaleError] has both tokens.
	ErrStale = errors.New("fence: stale token")

	// ErrInUse means that the file of a fence is already open, in this process or
	// in another: each would remember tokens that the other does not know.
	ErrInUse = errors.New("fence: in use")
)

// A StaleError says which token was refused, and because of which. It matches ErrStale.
type StaleError struct {
	Token   uint64 // the token that was refused
	Largest uint64 // the largest token that was admitted
}

// Error implements error.
func (e *StaleError) Error() string {
	return fmt.Sprintf("%v %d: %d was admitted before", ErrStale, e.Token, e.Largest)
}

// Unwrap returns ErrStale.
func (e *StaleError) Unwrap() error { return ErrStale }

// A Fence remembers the largest token that it has admitted. Its methods may be
// called from any goroutine. Use [Open] or [New] to make one.
type Fence struct {
	// raising is taken before mu to admit a larger token. A call that comes second with a token
	// finds it admitted, and does not wait for the writes that run with it.
	raising sync.Mutex
	// mu is held for reading while a write runs, so that it cannot be had for
	// writing, which is what it takes to admit a larger token.
	mu      sync.RWMutex
	largest uint64
	page    *page // where it is kept; nil in memory
	closed  bool
}

// New returns a fence in memory that has seen no token yet. It forgets its tokens when
// the process ends: use it only for data that ends with the process too.
func New() *Fence { return new(Fence) }

// Open returns the fence that is kept in the file at path. It creates the file if it
// does not exist, but not its folder. Two more files belong to the fence: path + ".lock"
// shows that it is open, and path + ".new" is the file that is being written.
//
// It returns ErrInUse if the file is already open. If a file is damaged, or is not the
// file of a fence, the error says what to do about it. The file path + ".lock"
// remains, as it does after Close. If path is not a regular file, Open refuses it and creates nothing.
// The disk must be local, or a network disk on which file locks work.
func Open(path string) (*Fence, error) {
	p, largest, err := openPage(path)
	if err != nil {
		return nil, err
	}
	return &Fence{largest: largest, page: p}, nil
}

// Do admits the token and runs write. While write runs, no larger token is admitted: a
// newer leader waits until write has returned, so write must come to an end. Writes
// with the same token run concurrently; the fence does not protect them from each
// other. write must not call the fence.
//
// If a larger token was admitted before, Do returns a *[StaleError] and does not run
// write. If the token is 0 or cannot be kept on disk, or if the fence is
// closed, Do returns an error that says so, and does not run write either. Otherwise it
// returns what write returns.
func (f *Fence) Do(token uint64, write func() error) error {
	if err := f.enter(token); err != nil {
		return err
	}
	defer f.mu.RUnlock()
	return write()
}

// Admit is the check without the write: it returns nil if no larger token was
// admitted before, and from then on smaller tokens are refused. After it has
// returned, a larger token may be admitted at any moment; the package
// documentation says where that is good enough. It waits for writes that [Fence.Do] runs
// with smaller tokens, and returns the same errors as Do.
func (f *Fence) Admit(token uint64) error {
	return f.Do(token, func() error { return nil })
}

// Largest returns the largest token that was admitted, 0 if none was.
func (f *Fence) Largest() uint64 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.largest
}

// Close waits for the writes that run, and lets others open the file. After that the
// fence admits no token, and its methods return errors that match [os.ErrClosed].
func (f *Fence) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.page == nil {
		f.closed = true
		return nil
	}
	f.closed = true
	return f.page.close()
}

// enter admits the token and returns with the mutex held for reading, so that it
// stays the largest; after an error the mutex is not held.
func (f *Fence) enter(token uint64) error {
	for {
		f.mu.RLock()
		err := f.check(token)
		if err == nil && token == f.largest {
			return nil
		}
		f.mu.RUnlock()
		if err == nil {
			err = f.raise(token)
		}
		if err != nil {
			return err
		}
	}
}

// raise makes token the largest, if no larger one came before. It waits for the
// writes that run under the one before.
func (f *Fence) raise(token uint64) error {
	f.raising.Lock()
	defer f.raising.Unlock()
	if f.Largest() >= token {
		return nil // it was admitted meanwhile, or a larger one
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.check(token); err != nil {
		return err
	}
	if f.page != nil {
		if err := f.page.write(token); err != nil {
			return fmt.Errorf("fence: token %d is not admitted, as it cannot be kept: %w", token, err)
		}
	}
	f.largest = token
	return nil
}

// check compares the token with the largest. The caller holds the mutex.
func (f *Fence) check(token uint64) error {
	switch {
	case f.closed:
		return fmt.Errorf("fence: %w", os.ErrClosed)
	case token == 0:
		return errors.New("fence: 0 is the token of nobody: send the token of the term or lock with the request")
	case token < f.largest:
		return &StaleError{Token: token, Largest: f.largest}
	}
	return nil
}
