package stores

import (
	"context"
	"errors"
	"iter"
	"os"
	"time"

	"github.com/electkv/election/cmd/elect/internal/oldlock"
)

// A Backend is what differs between the kinds of stores once they are open. Each kind
// has it in the file of its name. Kinds embed base for what most of them have not got.
type Backend interface {
	// Close closes the client.
	Close() error
	// Holds returns copies of the open files by which this process keeps its records
	// in the store alive. A process that inherits them keeps them alive too, up to
	// their deadlines, after this one has died. The caller closes them.
	Holds() []*os.File

	// InLines reports whether records stand in lines of keys, in which old locks may
	// wait.
	InLines() bool
	// Alone reports whether no other process sees the store.
	Alone() bool
	// Member reports whether this process is a part of the store itself.
	Member() bool
	// Observed reports whether observers judge when a record is over, not the store.
	Observed() bool

	// Check asks what is not a matter of one safe.
	Check(ctx context.Context) error
	// Hint says what may be wrong with a store that could not be used. Silent says
	// that no answer came in time. It is empty if there is nothing to say.
	Hint(ctx context.Context, silent bool) string
	// Absent says that there is nothing yet where the store is kept, or nothing if
	// there is.
	Absent() string

	// Examine says what the store can promise with a TTL. It has just worked.
	Examine(ctx context.Context, ttl time.Duration) []Finding
	// ExamineFailed says what is known of a store that has just failed.
	ExamineFailed(ctx context.Context) []Finding
	// OtherTTLs says what in the URL would have the store take other TTLs, in words
	// that follow those on the TTL itself.
	OtherTTLs() string
	// Delay says why the store may free a record much later than its TTL says.
	Delay() (why, advice string)
	// Unknown says what is at the place of a name whose record, perhaps foreign, is
	// known for no lock.
	Unknown(foreign bool) Finding

	// forget removes what the store keeps of a name beyond its last record.
	forget(ctx context.Context, name string) error
	// oldLocks returns the locks at a name that services had before.
	oldLocks(ctx context.Context, name string) ([]oldlock.Lock, error)
	// names yields the names with a prefix for which the store has a record of this library,
	// or had one, as far as it tells: in any order, some perhaps twice, and those of the safes
	// beside an election's too. An error is the last thing that it yields. One that matches
	// errors.ErrUnsupported says that this kind of store tells no names.
	names(ctx context.Context, prefix string) iter.Seq2[string, error]
}

// A base has nothing to close or to remove, and nothing to say.
type base struct{}

// Close implements [Backend].
func (base) Close() error { return nil }

// Holds implements [Backend].
func (base) Holds() []*os.File { return nil }

// InLines implements [Backend].
func (base) InLines() bool { return false }

// Alone implements [Backend].
func (base) Alone() bool { return false }

// Member implements [Backend].
func (base) Member() bool { return false }

// Observed implements [Backend].
func (base) Observed() bool { return false }

// Check implements [Backend].
func (base) Check(context.Context) error { return nil }

// Hint implements [Backend].
func (base) Hint(context.Context, bool) string { return "" }

// Absent implements [Backend].
func (base) Absent() string { return "" }

// ExamineFailed implements [Backend].
func (base) ExamineFailed(context.Context) []Finding { return nil }

// OtherTTLs implements [Backend].
func (base) OtherTTLs() string { return "" }

// Delay implements [Backend].
func (base) Delay() (why, advice string) {
	return "the store frees a record much later than its TTL says", "reckon with the longer time, or choose another store"
}

// Unknown implements [Backend].
func (base) Unknown(foreign bool) Finding {
	if !foreign {
		return Finding{Level: OK, Found: "somebody leads"}
	}
	return Finding{
		Level: Fail, Found: "something that no election wrote is at its place",
		Why: "as long as it is there nobody can be elected", Advice: "see what it is; if no program needs it, remove it",
	}
}

func (base) forget(context.Context, string) error                     { return nil }
func (base) oldLocks(context.Context, string) ([]oldlock.Lock, error) { return nil, nil }
func (base) names(context.Context, string) iter.Seq2[string, error] {
	return failing(errors.ErrUnsupported)
}
