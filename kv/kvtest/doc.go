// Package kvtest is the contract of [kv.Store] as tests that any backend runs.
//
// A backend's test opens its store on a real server and hands it over:
//
//	func TestTheStoreKeepsTheContract(t *testing.T) {
//		kvtest.Run(t, kvtest.Backend{
//			Open:   func(t testing.TB) kv.Store { return acmekv.New(dial(t), nil) },
//			Put:    func(t testing.TB, name, value string) { … },
//			Remove: func(t testing.TB, name string) { … },
//		})
//	}
//
// Each [Case] is one sentence about stores, and carries the clause of the
// contract that it checks; the clause is printed when the case fails. A case
// uses names of its own, new in each run, and empties them at its end, so that
// a server may be shared and may live long.
//
// # Time
//
// The cases judge times by the monotonic clock of the test's process, and only
// one way: nothing may happen too early, and whatever is owed must come within
// [kv.Lifetime] and a patience of many seconds, since the machine may be busy.
// They wait for real records to fade; most of them run side by side, so that
// [Run] takes a few times Lifetime(TTL).Max.
//
// A store that does no I/O can run each of [Cases] in a testing/synctest bubble,
// where waiting takes no time.
//
// # Not covered
//
// The suite has a healthy server. What a store does on one that hangs, fails
// over, forgets or answers late is for the backend's own tests.
package kvtest
