// Package fence lets a service refuse the writes of processes that no longer lead.
// It is for services that own the data that is written.
//
// No lease stops a leader that is frozen between a check of its term and a write:
// when it wakes, another may lead, and the write goes out all the same. Only the
// resource can stop it. Each leader sends its token with each request, the
// Token of its term or of its lock. Tokens grow from term to term. The service
// remembers the largest that it has seen, and refuses smaller ones.
//
//	f, err := fence.Open("/var/lib/billing/fence")
//	...
//	err = f.Do(request.Token, func() error {
//		return table.Store(request.Row) // no larger token is admitted meanwhile
//	})
//	if errors.Is(err, fence.ErrStale) { // another process leads: refuse the request
//
// # Do or Admit
//
// A check and the write after it must stay together. Otherwise a request that has
// passed the check may be slow. Meanwhile a newer leader passes the check and writes.
// Then the old write arrives, and undoes the new one. [Fence.Do] keeps the two
// together: while the write runs, no larger token is admitted. Use Do unless you
// have a reason not to.
//
// [Fence.Admit] is only the check. It is enough where the writes happen in the order
// of the checks anyway: in a service that handles one request after
// the other, or if the write goes to a resource that checks the token itself
// (a conditional update, another service with a fence). Elsewhere use it only
// to refuse a request early, before any work on it, and run the write in Do all
// the same.
//
// # What is promised
//
//   - When Do runs a write, or Admit returns nil, every later call with a smaller
//     token is refused, and every write that Do ran with a smaller token has
//     returned. If a process ends while Do runs a write, requests that the write has
//     already sent to another service may still arrive there.
//   - With [Open] that holds across restarts, crashes and power cuts, as long as
//     the disk keeps what it has acknowledged: a token is on disk before it is
//     admitted. If it cannot be written it is not admitted.
//   - An equal token is admitted: it is the same term.
//   - A file that is damaged, or is not the file of a fence, is an error. It is never
//     taken for the token 0.
//
// A missing file means a fence that has seen no token. Keep the file with the
// data that it guards, in the same backup, so that neither is ever restored
// without the other.
//
// # Cost
//
// One file is written and synced once for each new token, which is once per term.
// With the token that was admitted last, Do and Admit do not touch the disk, and calls
// run concurrently.
package fence
