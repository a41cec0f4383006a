package etcdkv

import (
	"context"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/kv"
)

// A Layout says at which keys a [Store] keeps a safe: [OneKey], the default, or
// [Claim]. All candidates of an election use the same keys.
type Layout int

const (
	// OneKey keeps a safe at the one key that is its name.
	OneKey Layout = iota

	// Claim keeps a safe as the locks and elections of package
	// go.etcd.io/etcd/client/v3/concurrency do, and those of etcdctl: each client in line
	// has a key (the name, a "/" and the lease in hexadecimal), and the safe holds the
	// key that was created first. Candidates do not wait in line, as those of a [Queue]
	// do: they send nothing while they wait, and get a safe only when nobody has it and
	// nobody waits for it. While old clients wait in line, they never lead.
	Claim
)

// String returns "key" or "claim".
func (l Layout) String() string {
	switch l {
	case OneKey:
		return "key"
	case Claim:
		return "claim"
	}
	return fmt.Sprintf("Layout(%d)", int(l))
}

const (
	// longestKey bounds keys, so that a request that carries one several times
	// stays well below the 1.5 MiB that a server takes by default.
	longestKey = 64 << 10

	// companionSuffix is put after a name to make the companions' name. No safe's
	// own key ends so, whatever the prefix: a companion is known by it.
	companionSuffix = ".election"
)

// open begins every operation.
func (s *Store) open(ctx context.Context, name string) (safe, error) {
	if ctx.Err() != nil {
		return safe{}, context.Cause(ctx)
	}
	return s.safe(name)
}

// safe returns the safe called name, or [kv.ErrInvalid].
func (s *Store) safe(name string) (safe, error) {
	base := s.opts.Prefix + name + s.opts.Suffix
	sf := safe{client: s.client, spares: &s.spares, sharing: &s.sharing, base: base, start: base, plain: s.opts.Plain, observed: s.observed}
	if err := s.unfit(); err != nil {
		return safe{}, err
	}
	switch {
	case name == "":
		return safe{}, fmt.Errorf("a safe needs a name: %w", kv.ErrInvalid)
	case len(base) > longestKey:
		return safe{}, fmt.Errorf("a key of %d bytes: want up to %d: %w", len(base), longestKey, kv.ErrInvalid)
	case strings.HasSuffix(base, companionSuffix):
		return safe{}, fmt.Errorf("key %.80q: keys that end in %q are for the records of plain values: want another name: %w",
			base, companionSuffix, kv.ErrInvalid)
	}
	if _, _, member := kv.MemberOf(name); member { // nobody else has locks there
		sf.plain = false
		return sf, nil
	}
	if s.opts.Layout == OneKey && !s.lines {
		return sf, nil
	}
	if strings.Contains(name, "/") {
		return safe{}, fmt.Errorf(`a "/" in a name would put it into another's line: want it in Options.Prefix or Suffix: %w`, kv.ErrInvalid)
	}
	sf.start += "/"
	sf.end = clientv3.GetPrefixRangeEnd(sf.start)
	return sf, nil
}

// unfit says why the store cannot be used at all, if it cannot.
func (s *Store) unfit() error {
	switch {
	case s.client == nil:
		return fmt.Errorf("client is nil: %w", kv.ErrInvalid)
	case s.lines && s.opts.Layout != OneKey:
		return fmt.Errorf("layout %q: a Queue has its own: leave Options.Layout out, or use New: %w", s.opts.Layout, kv.ErrInvalid)
	case s.opts.Layout < OneKey || s.opts.Layout > Claim:
		return fmt.Errorf("layout %q: want OneKey or Claim, or NewQueue: %w", s.opts.Layout, kv.ErrInvalid)
	}
	return nil
}
