package stores

import (
	"context"
	"errors"

	"github.com/electkv/election/cmd/elect/internal/oldlock"
	"github.com/electkv/election/kv"
)

// A server keeps records at keys, where other programs may have their locks.
type server struct {
	base
	view      oldlock.View
	where     *location
	addresses []string // host:port
}

// view returns what the URL says of a server's records, with the prefix of their keys.
func (l *location) view(prefix string) (oldlock.View, error) {
	plain, err := l.flag("plain")
	if err != nil {
		return oldlock.View{}, err
	}
	observed, err := l.observed()
	return oldlock.View{Prefix: prefix, Plain: plain, Observed: observed}, err
}

// store returns what the URL asks for.
func (s *server) store() kv.Store {
	return s.view.Store(s.view.Plain, s.view.Observed, s.view.Layout)
}

// InLines implements [Backend].
func (s *server) InLines() bool {
	return s.view.Layout == oldlock.Queue || s.view.Layout == oldlock.Claim
}

// Observed implements [Backend].
func (s *server) Observed() bool { return s.view.Observed }

// companionSuffix ends the keys of etcd and Consul that say whose a plain value is.
const companionSuffix = ".election"

// errNoPrefix is the answer to those who would have a store read as a whole.
var errNoPrefix = errors.New("the URL has no prefix, and other programs may keep anything there: add one to the URL, or name elections")

// Hint implements [Backend].
func (s *server) Hint(ctx context.Context, silent bool) string {
	return s.where.reachable(ctx, s.addresses, silent)
}

// OtherTTLs implements [Backend].
func (s *server) OtherTTLs() string {
	if s.view.Observed {
		return ""
	}
	return ", or expiry=observer in the URL, which has them from 500ms on"
}

// Unknown is asked where the old locks, of which records are some, were looked for
// just before.
func (s *server) Unknown(bool) Finding {
	return Finding{Level: Warn, Found: "what is at its place has just changed", Advice: "look again"}
}

// wallClock is the finding on a server that judges expiry by its wall clock, unless
// candidates do. resource is what should refuse a leader of the past, and how.
func wallClock(observed bool, resource string) Finding {
	if observed {
		return Finding{Level: OK, Subject: "clock", Found: "candidates judge expiry by their own clocks; the server's is not asked"}
	}
	return Finding{
		Warn, "clock", "expiry runs on the server's wall clock",
		"if it jumps forward, a second leader is elected while the first still trusts its lease",
		"let the server's clock be slewed, never stepped, or have candidates judge (expiry=observer), and have " + resource,
	}
}

// monotonic are the findings on servers that judge expiry by their monotonic clocks,
// unless candidates do.
func monotonic(observed bool, expiring, name string) []Finding {
	if observed {
		return []Finding{{Level: OK, Subject: "clock", Found: "candidates judge expiry by their own clocks; the servers' are not asked, and each refresh is a write"}}
	}
	return []Finding{
		{Level: OK, Subject: "clock", Found: expiring + " run on the servers' monotonic clocks"},
		{Level: OK, Subject: "expiry", Found: name + " judges; with ?expiry=observer candidates do, by their own clocks: TTLs from 500ms on, for one write per refresh"},
	}
}
