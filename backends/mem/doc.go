// Package memkv keeps safes in the memory of one process. Choose it for tests, for
// examples, and for goroutines that elect one of themselves.
//
//	store := memkv.New() // all candidates share it
//	candidate, err := election.New(store, "billing", nil)
//	if err != nil {
//		return err
//	}
//	return candidate.Run(ctx, func(ctx context.Context, term *election.Term) error {
//		return bill(ctx, term.Token()) // return soon after ctx has ended
//	})
//
// # Guarantees
//
// At most one live record per safe, as long as the process lives. Nothing
// survives the process, so tokens start anew with each [New].
//
// # Records
//
// Each name has one map entry; names and values are any strings. Rosters ([kv.Roster]) have an
// entry for each member. Tokens and
// revisions are drawn from one counter of the store. Expiry is measured with the
// monotonic clock, so it works in a testing/synctest bubble.
//
// # Requirements
//
// None: candidates share the *Store value.
//
// # Cost
//
// Each change of a safe wakes the watches of that safe, and so does the expiry of
// its record. The store remembers every name that it was ever asked about.
package memkv
