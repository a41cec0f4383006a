// Package election elects one leader among processes that share a store: etcd,
// Consul, Redis, a SQL database, a directory on one host, or only each other.
//
//	store := etcdkv.New(client, nil)
//	candidate, err := election.New(store, "billing", nil)
//	...
//	err = candidate.Run(ctx, func(ctx context.Context, term *election.Term) error {
//		return bill(ctx, term.Token()) // until ctx ends
//	})
//
// # The picture
//
// An election is a key in the store, the safe. It holds at most one record, with the
// signature of the candidate that leads. Candidates try to put theirs in. A record
// expires after its time to live (TTL) unless its owner refreshes it. The other
// candidates watch the safe, and try again when it is vacant.
//
//	candidate ── create ──▶ safe vacant?  yes ─▶ elected ─▶ refresh, refresh, refresh …
//	    ▲                        │ no                          │ refused, or too late
//	    │                        ▼                             ▼
//	    └──── vacant ◀──── watch the record              term ended ─▶ campaign again
//
// Start with [Candidate.Run]. It calls a function while the candidate leads, and
// knows that the work has stopped when that function returns. [Candidate.Campaign] and
// [Candidate.Notify] suit programs of another shape; [Candidate.TryCampaign] and
// [Candidate.TryRun] make one attempt and do not wait. [Current] and [Watch] tell who
// leads. Package lock offers a lock instead, and package fence refuses the writes of
// former leaders.
//
// # Trust
//
// A leader trusts its lease until
//
//	start of the last successful request + TTL − margin
//
// It counts from before the request was sent, never from the reply, and only if the
// reply proves that the record in the safe is still its own. At that instant a
// timer ends the term's context. The timer waits for nothing, so it also fires while a
// call to the store hangs. Time during which the system was suspended counts.
//
// The margin covers clocks that run at different rates, and the time that work needs to stop.
// Let ρ bound how far any clock's rate is from true, T be the TTL, G the margin
// and W the time from the end of the context to the end of the work's effects.
// The store does not let another in before T/(1+ρ) has passed since the request;
// the leader's context ends by (T−G)/(1−ρ), and its work has stopped W later. So there
// is one leader at a time if
//
//	G ≥ T·2ρ/(1+ρ) + W
//
// New refuses a margin below this with ρ = 1 % and W = 50 ms; the default is a
// tenth of the TTL, or that least. Work that needs longer to stop needs a larger
// margin. A refresh is sent every R = (T−G)/3 and may take R, so there is time for a
// second attempt. New also refuses a margin that leaves less than a quarter of the TTL,
// or less than 37.5 ms, for trust.
//
// This is the argument of Gray and Cheriton, "Leases: An Efficient
// Fault-Tolerant Mechanism for Distributed File Cache Consistency" (SOSP 1989),
// with the client's side counted from the send.
//
// # What is assumed
//
// At most one term of an election is alive at a time if
//
//   - no clock's rate is further than ρ from true,
//   - the leader's host is not paused or suspended for longer than its own clock
//     shows (on Linux CLOCK_BOOTTIME, which counts suspend; a virtual machine that
//     is restored or moved may not see the pause),
//   - the store keeps what it has acknowledged,
//   - the work's effects end within W of the end of its context.
//
// If one of these does not hold, only the token stops a former leader.
//
// # What is promised
//
//   - At every instant at most one term of an election is alive, whatever the
//     network or the scheduler does, as long as clocks keep to ρ and the store keeps
//     its Guarantees (each backend documents them).
//   - Each term's token is larger than that of every earlier one. A process that
//     is frozen between a look at its term and a write cannot be stopped by any
//     lease; a resource that refuses smaller tokens stops it.
//   - A candidate gives the safe up only after its work has returned.
//   - After a reply was lost, a candidate finds out what happened. It recognises its
//     own record by a nonce, and takes it over or removes it.
//   - A record that this library did not write is another program's lock. Candidates
//     wait for it, and never touch it.
//   - A waiting candidate sends hardly any requests if the store can push changes: a rare
//     read, in case a watch has gone silent. (The heir refreshes its own record. A
//     candidate that waits in line with other programs refreshes its place: kv.Queue.)
//   - When Run, Campaign, Watch or Resign has returned, nothing that it started
//     is left. Only a store call or a health check that ignores its context can
//     delay that.
//
// # Succession
//
// Candidates that wait compete for a second safe, the heir's, beside the leader's. (A
// candidate that no other precedes in the order first tries the leader's safe once.)
//
//	candidates ── create, or displace ──▶ heir's safe ── create, or be handed ──▶ leader's safe
//	              by the order                           it by the leader
//
// Only the heir watches the leader's safe; all others watch the heir's. So the end
// of a leader wakes one process. A leader that leaves puts the heir's signature into
// its own safe, in one write, when its work has stopped. The heir leads at once if that
// record is backed by the lease of the heir's own record, and that lease can be trusted for
// another third of the TTL. Otherwise it refreshes the record first. If the leader crashes, the
// heir claims the safe as it becomes vacant.
//
// An order ([FirstCome], which is the default, [ByRank], [Ring], [ByList], or your
// own) decides who displaces whom as heir, and never who leads. So an order that is wrong or
// late cannot make two leaders. A leader gives way to an heir that comes before it in the order
// and has been heir for Options.Stability. Candidates whose terms keep ending early wait longer
// each time.
// [Term.Transfer], [RequestTransfer] and Options.MaxTerm hand over on purpose.
//
// With Options.NoHeir there is no second safe: all candidates watch the leader's, and some
// of them claim it when it becomes vacant. That is the default in a store that keeps
// lines (kv.Queue).
//
// IDs should be unique, since an order knows candidates by their IDs.
//
// # Once per tick
//
// The safe is free again as soon as the work is done. So if every host starts the same
// job at the same tick, one host after the other would run it. With Options.Hold the
// election stays closed for a while after the work began: the candidate that is
// elected puts a record into a third safe, NAME:hold, before its work begins. Nobody
// refreshes or deletes that record; it expires, whatever becomes of the candidate. A
// candidate that is elected meanwhile waits until it has expired; TryCampaign and TryRun give up
// instead. [CurrentHold] shows it.
//
// # Failures
//
//	the leader's process dies        the next is elected within the store's Lifetime.Max, usually about the TTL
//	the leader is cut off            its term ends a margin before the TTL is over; then the same
//	the leader is paused or asleep   the same; when it wakes, its term has ended
//	the leader is unhealthy          it steps down once its work has returned
//	its record is deleted, replaced  its term ends as soon as the store reports it, at the latest at the next refresh
//	the store is down                nobody leads once trust has run out; all candidates try again
//	leader and heir die together     when the heir's record has expired, another becomes heir, and then leads
//	the store is slow                a term survives answers that take up to (TTL - margin)/3
package election
