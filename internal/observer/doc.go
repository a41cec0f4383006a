// Package observer makes a [kv.Store] of a store whose records nobody but their
// observers lets expire: expiry judged by the observer.
//
// Every refresh is a write and gives the record a new revision. Whoever has seen one
// revision unchanged for the record's TTL, on its own clock, takes the record for
// dead and may replace it, by a write on the condition that the store still holds
// exactly that revision. No clock of the store is asked, so that none can be wrong.
package observer
