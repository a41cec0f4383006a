// Package linear judges whether a store was linearizable: whether what several
// clients were told by it can be told as one story, in which each operation
// happened at one moment between its call and its return.
//
// A [Recorder] notes what clients ask of a [kv.Store] and what they are told.
// [Check] takes such a history and looks for the story, one safe at a time, with
// porcupine (Wing and Gong's search, with the memory of Lowe's). The rules of
// the story are those of package kv; see safe.
//
// # What is not known
//
// After an error that is not one of the contract's definite ones the outcome of
// a write is unknown: it may have happened, may happen at any time later, or
// never. Such an operation never returns, as far as the story goes. Each makes
// the search longer; give a safe a few at most, and many safes.
//
// # Time
//
// A record may fade once its TTL has passed since the call of the last write or
// refresh, and not before; nothing says that it must. So a record that is gone
// too early breaks the contract, and a record that stays does not. A record may
// also fade as soon as the client that signed it has died, if the history says
// so: the file store ends a record with its holder's process.
//
// # Moves
//
// A refresh changes the revision if it may move its record to a lease that others share
// ([kv.Held.Share]), or if an earlier call has let the record share one, and at no other time.
// What it has moved from is worth no more than any old revision. A refresh of unknown outcome
// may move its record at any time later. So may one that was answered, but only from the revision
// that it told: a store may have begun the move beside what it answered.
//
// # What a history must be
//
// No two writes have the same signature, value and note. Then what a reader saw
// tells which write it saw, and every token and revision belongs to one write: the
// search need not guess. Check refuses any other history.
//
// A hand-over in one step ([kv.HandOver]) is judged in the stories of both safes: it
// replaced what the one held, at some moment, and the other held the heir, at some
// moment. That both were the same moment is not judged, nor is a refusal.
//
// Not judged here: foreign records, leases handed over, watches, how long a
// record may stay beyond its TTL. A store that keeps a safe closed for a while
// after its owner has gone needs TTLs that outlast the history.
package linear
