package kvtest

import (
	"errors"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

const anyName = "Names are any non-empty strings. A name is kept apart from every other name, or refused with ErrInvalid."

var nameCases = []Case{
	{Name: "odd names are kept apart or refused", Clause: anyName, check: oddNamesAreKeptApartOrRefused, long: true},
	{Name: "names that are paths are not resolved", Clause: anyName, check: namesThatArePathsAreNotResolved},
	{Name: "very long names are kept apart or refused", Clause: anyName, check: veryLongNamesAreKeptApartOrRefused},
	{Name: "a name is not confused with those that begin with it", Clause: anyName, check: aNameIsNotConfusedWithThoseThatBeginWithIt},
}

func oddNamesAreKeptApartOrRefused(t *trial) {
	var names []string
	base := t.name()
	for _, odd := range []string{
		"", "/", "//", "/a", "/a/", "/a/b", "/ab", "a", "A", "a ", " a", "a//b", "a.", ".", "..",
		"%2F", "%2fa", "%00", "+", "?x=y", "#", "&", ";", ":", "\\", "\\a", "*", "[a]", "{a}", "{", "}", "$a", "~", "'", `"`, "`",
		"\n", "\r\n", "\t", "\x00", "\x00a", "\x7f", "\xff", "\xfe", "\ufffd",
		"ключ", "é", "e\u0301", "漢字", "🗝", "\u202e", "\u200b", ".lock", ".tmp", "-1", ":fence",
	} {
		names = append(names, base+odd)
	}
	t.keptApart(names)
}

func namesThatArePathsAreNotResolved(t *trial) {
	a, b := t.name(), t.name()
	t.keptApart([]string{
		a, "/" + a, "./" + a, "../" + a, "//" + a, a + "/.", a + "/..", a + "/../" + b, b, a + "/./" + b, a + "/" + b, a + "//" + b,
		"%2F" + a, "%2e%2e/" + a, "C:" + a, "~/" + a,
	})
	for _, name := range []string{".", "..", "/", "//", "\x00", " "} {
		_, err := t.s.Get(t.ctx, name)
		if !errors.Is(err, kv.ErrVacant) && !errors.Is(err, kv.ErrInvalid) {
			require.NoError(t, err, "get %q", name)
		}
	}
}

// The names differ at their very end.
func veryLongNamesAreKeptApartOrRefused(t *trial) {
	for _, n := range []int{200, 255, 256, 1 << 10, 4 << 10, 64 << 10, 1 << 20, 3 << 20} {
		long := t.name() + strings.Repeat("n", n)
		t.keptApart([]string{long + "a", long + "b", long})
	}
}

func aNameIsNotConfusedWithThoseThatBeginWithIt(t *trial) {
	a := t.name()
	w := t.watch(t.open(), a)
	require.True(t, w.next().vacant(), "the present state")
	longer := []string{a + "/", a + "/b", a + "b", a + " "}
	held := t.keptApartLater(longer)
	w.staysQuiet(t.ttl / 2)
	t.vacant(a)
	rec := t.create(t.s, a, t.signed("the short name"))
	w.sees(rec)
	for name, other := range held {
		t.delete(t.s, name, other)
		t.holds(a, rec)
	}
	w.staysQuiet(t.ttl / 2)
}

// keptApart requires that each name has a safe of its own, or is refused
// throughout.
func (t *trial) keptApart(names []string) {
	t.Helper()
	held := t.keptApartLater(names)
	for name, rec := range held {
		t.refresh(t.s, name, rec)
		held[name] = t.publish(t.s, name, rec, rec.Value+" changed")
	}
	for name, rec := range held {
		t.holds(name, rec)
	}
	for _, name := range names {
		rec, ok := held[name]
		if !ok {
			continue
		}
		t.delete(t.s, name, rec)
		t.vacant(name)
		delete(held, name)
		for other, rec := range held {
			got, err := t.s.Get(t.ctx, other)
			require.NoError(t, err, "%.80q after the delete of %.80q", other, name)
			require.True(t, rec == got, "%.80q changed with the delete of %.80q: %s", other, name, describe(got))
			break // one of them, at random: all would take long
		}
	}
}

// keptApartLater puts a record under each name that is not refused, and returns
// them. Each name has its own.
func (t *trial) keptApartLater(names []string) map[string]kv.Record {
	t.Helper()
	held := make(map[string]kv.Record, len(names))
	for _, name := range names {
		start := time.Now()
		rec, err := t.s.Create(t.ctx, name, t.signed("the record of "+name[:min(len(name), 80)]))
		if errors.Is(err, kv.ErrInvalid) {
			t.refuses(name, t.signed(""))
			continue
		}
		require.NoError(t, err, "create %.80q (%d bytes), given up after %v", name, len(name), time.Since(start))
		t.cleanLater(name)
		held[name] = rec
	}
	for name, rec := range held {
		t.holds(name, rec)
	}
	return held
}
