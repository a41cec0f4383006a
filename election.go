package election

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/electkv/election/kv"
)

var (
	// ErrLost is the cause of a term that ended against the candidate's will:
	// the lease could not be refreshed in time, or the record is gone or
	// somebody else's.
	ErrLost = errors.New("election: leadership lost")

	// ErrResigned is the cause of a term that its leader gave up: by Resign, or
	// because its Health check failed.
	ErrResigned = errors.New("election: resigned")

	// ErrNoLeader means that nobody leads at the moment.
	ErrNoLeader = errors.New("election: nobody leads")
)

const (
	defaultTTL = 15 * time.Second
	maxName    = 512
	maxValue   = 64 << 10
)

// Options say how a candidate campaigns and leads. The zero value of each field
// means its default.
type Options struct {
	// ID names the candidate to people: in Leader, in logs, in the store. It
	// need not be unique, though it helps. Default: host name and process id.
	ID string

	// Value is published with the ID, e.g. the leader's address. At most 64 KiB.
	// A leader changes it with Term.Proclaim.
	Value string

	// TTL is how long a leader that vanished keeps others out. Shorter means a
	// faster failover, and less patience with a slow store or network. Stores
	// differ in how exactly they keep it: see their Guarantees. Default: 15 s.
	TTL time.Duration

	// Margin is how long before the store may give the lease to another a term
	// ends here. It pays for clocks that run at different rates and for the time
	// that work needs to notice that its context has ended; a leader whose work
	// needs time to stop asks for more. See the package documentation for the
	// least that is safe. Default: a tenth of the TTL, or that least.
	Margin time.Duration

	// Health, if not nil, is asked before the candidate claims a vacant safe,
	// and a few times a TTL while it leads. While it returns an error the
	// candidate does not stand; a leader steps down. It must return when its
	// context ends; a check that takes longer than that counts as failed. While
	// every candidate is unhealthy, nobody leads.
	Health func(context.Context) error

	// Logger gets one record for each change of state. Default: silence.
	Logger *slog.Logger
}

// A Candidate stands in one election. It holds no state between campaigns and
// may be used by several goroutines; each campaign stands for itself.
type Candidate struct {
	store kv.Store
	name  string
	opts  Options
	pace  pace
	clock func() instant
	log   *slog.Logger
}

// New returns a candidate in the election called name, among all who use the
// same name in the same store. It asks nothing of the store. Options may be nil.
//
// The error says which argument is wrong, and what would be right: an empty or
// overlong name, a TTL that the store cannot honour, a margin that does not fit
// the TTL.
func New(store kv.Store, name string, opts *Options) (*Candidate, error) {
	if store == nil {
		return nil, errors.New("election: store is nil")
	}
	if err := checkText("name", name); err != nil {
		return nil, err
	}
	o := Options{}
	if opts != nil {
		o = *opts
	}
	o = o.withDefaults()
	if err := checkText("ID", o.ID); err != nil {
		return nil, err
	}
	if len(o.Value) > maxValue {
		return nil, fmt.Errorf("election: value of %d bytes is too long: at most %d", len(o.Value), maxValue)
	}
	p, err := newPace(o.TTL, o.Margin)
	if err != nil {
		return nil, err
	}
	if _, err := store.Lifetime(o.TTL); err != nil {
		return nil, fmt.Errorf("election: TTL %v: %w", o.TTL, err)
	}
	return &Candidate{
		store: store,
		name:  name,
		opts:  o,
		pace:  p,
		clock: now,
		log:   o.Logger.With("election", name, "id", o.ID),
	}, nil
}

func (o Options) withDefaults() Options {
	if o.ID == "" {
		o.ID = defaultID()
	}
	if o.TTL == 0 {
		o.TTL = defaultTTL
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func defaultID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}

// checkText refuses names and IDs that people could not read back.
func checkText(what, s string) error {
	switch {
	case s == "":
		return fmt.Errorf("election: %s is empty", what)
	case len(s) > maxName:
		return fmt.Errorf("election: %s of %d bytes is too long: at most %d", what, len(s), maxName)
	case !utf8.ValidString(s):
		return fmt.Errorf("election: %s %q is not valid UTF-8", what, s)
	case strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("election: %s %q contains control characters", what, s)
	}
	return nil
}
