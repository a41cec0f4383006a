// Package lock is for people who want a lock, not an election: a [Mutex] that
// processes share through a store (etcd, Consul, Redis, a SQL database, a directory, or
// only each other). It is a thin layer over package election, and keeps all promises of
// that package.
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
// If the work is a function, use [Mutex.Do], which never forgets to unlock.
//
// # A lock that can be lost
//
// Unlike a sync.Mutex, this one is a lease: a process that dies or is cut off
// loses it, so that others can go on. Then [Held.Context] ends with the cause
// [ErrLost], at the latest a margin before another process can have the lock. (If the
// record is removed by hand, it ends as soon as the store reports that.) Work has to
// stop then. No lock can stop a process that is frozen between a check of the clock
// and a write. The resource can, with [Held.Token]: see package fence, and
// [Held.NamedRecord] for the stores' own guards.
//
// Unlock the lock when the work has stopped, even if it was lost. [Held.Unlock]
// says whether it was held to the end.
//
// # Once per tick
//
// A lock excludes others only while it is held: hosts that start the same
// work at the same tick do it one after the other. With [Options.Hold] the lock stays
// closed for that long after it was locked, whatever happens to its holder, and
// [Mutex.TryLock] on the other hosts finds it closed:
//
//	m, err := lock.New(store, "nightly", &lock.Options{Hold: 50 * time.Minute})
//	...
//	held, err := m.TryLock(ctx)
//	if errors.Is(err, lock.ErrHeld) {
//		return nil // another host does it, or has done it
//	}
//
// All users of the lock need the same Hold. docs/run/cron.md says how to choose it.
//
// # Errors
//
//	ErrHeld         another has the lock; the text says who
//	ErrUnavailable  the store gave no clear answer; the reason is wrapped
//	ErrLost         the lock was lost before it was unlocked
//	ErrMisuse       unlocked twice, or without a lock; a Mutex not made by New
//
// All are matched with errors.Is. A request that the store can never carry out
// matches kv.ErrInvalid, and says what would be right.
//
// # Elections and old locks
//
// A lock is an election whose winner holds it. If a Mutex, a candidate, the command
// elect or, where the store's documentation says so, another library's lock holds a
// name, it keeps all others out.
package lock
