package stores

import (
	"context"
	"errors"
	"time"

	memkv "github.com/electkv/election/backends/mem"
)

func memKind() kind {
	return kind{
		name: "mem", form: "mem:", parse: parseMem,
		help:     [][2]string{{"mem:", "this process only"}},
		unshared: "is for one process, and the demo has three; use file:///directory",
	}
}

func parseMem(l *location) (opener, error) {
	if l.slashes || l.path != "" {
		return nil, errors.New("memory has no host and no path")
	}
	return func(context.Context, purpose) (*Store, error) {
		return &Store{KV: memkv.New(), Backend: memStore{}}, nil
	}, nil
}

// A memStore is this process's own.
type memStore struct{ base }

// Alone implements [Backend].
func (memStore) Alone() bool { return true }

// Examine implements [Backend].
func (memStore) Examine(context.Context, time.Duration) []Finding {
	return []Finding{{Warn, "scope", "one process", "no other process sees this memory", "use it for tests only"}}
}
