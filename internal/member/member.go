// Package member has what stores that keep rosters have in common.
package member

import (
	"strings"
	"time"

	"github.com/electkv/election/kv"
)

// Page is how many records a store that reads a roster in pages reads at once.
const Page = 500

// Poll is how long a store that cannot push waits before it says that a roster may have changed.
const Poll = 2 * time.Second

// shown is how many bytes of a foreign record's value are shown.
const shown = 1 << 10

// Prefix returns how the names of all members of a roster begin.
func Prefix(roster string) string { return kv.MemberName(roster, "") }

// Within reports whether a name that begins with the roster's prefix belongs to that roster, and
// not to one whose name begins in the same way.
func Within(roster, name string) bool {
	rest, ok := strings.CutPrefix(name, Prefix(roster))
	return ok && rest != "" && !strings.Contains(rest, Prefix(""))
}

// Listed returns a record as a store lists it. At a name that is no member's, nobody but another
// program has put it.
func Listed(name string, rec kv.Record) kv.Held {
	if _, _, ok := kv.MemberOf(name); !ok && !rec.Foreign {
		rec = kv.Record{Value: rec.Value, Revision: rec.Revision, Foreign: true, Permanent: rec.Permanent}
	}
	if rec.Foreign && len(rec.Value) > shown {
		rec.Value = strings.Clone(rec.Value[:shown])
	}
	return kv.Held{Name: name, Record: rec}
}
