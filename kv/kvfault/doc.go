// Package kvfault wraps a [kv.Store] in the faults of networks, servers and
// clients, for tests of what is built on a store.
//
// A test says what shall go wrong in a sentence, and takes it back later:
//
//	faults := kvfault.Wrap(store)
//	candidate, err := election.New(faults.Store, "billing", nil)
//	…
//	faults.On(kvfault.Create).Next(1).DropReplies() // carried out, but nobody learns of it
//	faults.On().DropRequests()                      // cut off altogether
//	faults.On(kvfault.Refresh).Hang()               // deaf to its context too
//	faults.On(kvfault.Watch).Fail(err)              // the watch breaks
//	faults.Heal()
//
// Faults can be changed from any goroutine while calls are under way. A call is
// struck by the fault that is set when it begins. A watch is struck by each
// fault that is set while it runs.
//
// The package blocks on channels and timers alone, never with a mutex held, so
// that it works in testing/synctest bubbles; there, call [Wrap] inside the
// bubble. It starts no goroutine that outlives the call or loop that it serves.
package kvfault
