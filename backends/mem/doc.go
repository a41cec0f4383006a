// Package memkv keeps safes in the memory of one process: for tests, for
// examples, and for electing among goroutines.
//
// # Guarantees
//
// At most one live record per safe, as long as the process lives. Nothing
// survives it, so tokens start anew with each [New].
//
// # Records
//
// A map entry a name; names and values are any strings. Token and revision are
// drawn from one counter of the store. Expiry is measured with the monotonic
// clock, so it works in a testing/synctest bubble.
//
// # Requirements
//
// None: candidates share the *Store value.
//
// # Cost
//
// A watch is woken by each change of its safe and by the record's expiry. The
// store remembers every name it was ever asked about.
package memkv
