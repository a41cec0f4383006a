// Package fence refuses the writes of those who do not lead any more, for
// services that own what they write to.
//
// No lease stops a leader that is frozen between a look at its term and a write:
// when it wakes, another may lead, and the write goes out all the same. What
// stops it is the resource. Each leader sends its token with each request, the
// Token of its term or of its lock; tokens grow from term to term; the service
// remembers the largest that it has seen, and refuses smaller ones.
//
//	f, err := fence.Open("/var/lib/billing/fence")
//	...
//	err = f.Do(request.Token, func() error {
//		return table.Store(request.Row) // no larger token is admitted meanwhile
//	})
//	if errors.Is(err, fence.ErrStale) { // somebody else leads: refuse the request
//
// # Do or Admit
//
// A check and the write after it must not come apart. A request that has passed
// the check may be slow; meanwhile a newer leader passes the check and writes;
// then the old write comes, and undoes the new one. [Fence.Do] keeps the two
// together: the write runs while no larger token is admitted. It is the one to
// use.
//
// [Fence.Admit] is the check alone. It is enough where the order of the checks
// is the order of the writes anyway: in a service that handles one request after
// the other, or if what follows is itself refused by a resource that knows the
// token (a conditional update, another service with a fence). Elsewhere it is a
// way to refuse early, before a request is worked on; the write goes into Do all
// the same.
//
// # What is promised
//
//   - When Do runs a write, or Admit returns nil, every later call with a smaller
//     token is refused, and every write that Do ran with a smaller token has
//     returned. A process that ends while Do runs a write takes that write along
//     only if the write is the process's own: what it has sent elsewhere may still
//     arrive.
//   - With [Open] that holds across restarts, crashes and power cuts, as long as
//     the disk keeps what it has acknowledged: a token is on disk before it is
//     admitted. If it cannot be written it is not admitted.
//   - An equal token is admitted: it is the same term.
//   - A file that is damaged, or is none of a fence, is an error, and never taken
//     for the token 0.
//
// A file that is not there is a fence that has seen nothing. Keep it with the
// data that it guards, in one backup with it, so that neither is ever restored
// without the other.
//
// # Cost
//
// One file is written and synced once for each new token, which is once per term.
// With the token that was admitted last, Do and Admit touch no disk, and calls
// run side by side.
package fence
