// Package gather makes one request of the refreshes that many elections of a process ask
// for at about the same time.
//
// The first refresh that is asked for opens a round. Those that follow within its window
// join it, and when the window closes the store is asked for all of them at once
// ([kv.Batch]). Each is told its own verdict. A round waits for no other, so one that a
// store does not answer delays nobody who asks after it.
//
// The caller counts its trust from when it asked, which is before anything is sent. A
// window costs that much trust, and can gain none.
//
// Those whose refreshes are due at about the same time are called together, too ([Alarm]).
//
// A round lasts no longer than the refreshes that it was opened for: when all of them have
// been called off, its request is called off too.
package gather
