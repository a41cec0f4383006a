package kvtest

import (
	"github.com/stretchr/testify/require"
)

var getCases = []Case{
	{
		Name:   "a safe that nobody ever used is vacant",
		Clause: "Get returns the safe's record, or ErrVacant.",
		check:  func(t *trial) { t.vacant(t.name()) },
	},
	{
		Name:   "a read shows every write that returned before",
		Clause: "Reads are linearizable: they show every write that returned before the read began.",
		check:  aReadShowsEveryWriteThatReturnedBefore,
	},
	{
		Name:   "a record read back is as good as the one that was returned",
		Clause: "An adapter's only state that could not be read back from the store is about leases: those that it holds in reserve, and those that records of its process share. Lease: a caller passes it back as it came.",
		check:  aRecordReadBackIsAsGood,
	},
}

func aReadShowsEveryWriteThatReturnedBefore(t *trial) {
	other, name := t.open(), t.name()
	for range 10 {
		rec := t.succeed(t.s, name, t.signed("created"))
		require.Equal(t, rec, t.get(other, name), "after a create")
		rec = t.publish(t.s, name, rec, "published")
		require.Equal(t, rec, t.get(other, name), "after a swap")
		t.delete(t.s, name, rec)
		t.vacant(name)
	}
}

// The engine adopts its own record after a lost reply, and so does a process
// that restarts: all they have is what Get returns.
func aRecordReadBackIsAsGood(t *trial) {
	other := t.open()
	name, _ := t.held()
	t.refresh(other, name, t.get(other, name))
	rec := t.publish(other, name, t.get(other, name), "published by another client")
	t.refresh(t.s, name, rec)
	rec = t.swap(other, name, t.get(other, name), t.signed("handed over"))
	t.refresh(t.s, name, t.get(t.s, name))
	t.holds(name, rec)
	t.delete(other, name, t.get(other, name))
	t.vacant(name)
}
