// Package lock is for people who want a lock, not an election: a [Mutex] that
// processes share through a store (etcd, Consul, Redis, a directory). It is a
// thin layer over package election, and keeps all that is promised there.
//
//	m, err := lock.New(store, "reports", nil)
//	...
//	held, err := m.Lock(ctx) // ctx bounds the waiting, not the holding
//	if err != nil {
//		return err
//	}
//	defer held.Unlock(ctx)
//	return report(held.Context(), held.Token())
//
// or, where the work is a function, [Mutex.Do], which cannot forget anything.
//
// # A lock that can be lost
//
// Unlike a sync.Mutex, this one is a lease: a process that dies or is cut off
// loses it, so that others can go on. The holder is told by the end of
// [Held.Context], whose cause is [ErrLost], at the latest a margin before
// anybody else can have the lock (as soon as the store tells, if somebody removes
// the record by hand). Work has to stop then. What no lock can stop
// (a process that is frozen between a look at the clock and a write) is stopped
// by the resource, with [Held.Token]: see package fence, and [Held.Record] for
// the stores' own guards.
//
// The lock is unlocked when the work has stopped, lost or not. [Held.Unlock]
// says whether it was held to the end.
//
// # Once per tick
//
// A lock excludes others while it is held, and no longer: hosts that start the same
// work at the same tick do it one after the other. With [Options.Hold] the lock stays
// closed for so long after it was locked, whatever becomes of its holder, and
// [Mutex.TryLock] on the other hosts finds it closed:
//
//	m, err := lock.New(store, "nightly", &lock.Options{Hold: 50 * time.Minute})
//	...
//	held, err := m.TryLock(ctx)
//	if errors.Is(err, lock.ErrHeld) {
//		return nil // another host does it, or has done it
//	}
//
// Everybody who uses the lock is given the same Hold. docs/cron.md says how to choose
// it.
//
// # Errors
//
//	ErrHeld         somebody else has the lock; the text says who
//	ErrUnavailable  the store gave no clear answer; the reason is wrapped
//	ErrLost         the lock was lost before it was unlocked
//	ErrMisuse       unlocked twice, or without a lock; a Mutex not made by New
//
// All are matched with errors.Is. A request that the store can never carry out
// matches kv.ErrInvalid, and says what would be right.
//
// # Elections and old locks
//
// A lock is an election whose winner holds it. What is held under a name, by a
// Mutex, a candidate, the command elect or, where the store's documentation says
// so, another library's lock, keeps all others out.
package lock
