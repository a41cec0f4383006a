// Package election chooses one leader among processes that share a store: etcd,
// Consul, Redis, a directory on one host.
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
// There is a safe that holds one signature. Candidates try to put theirs in. A
// signature fades after its time to live (TTL) unless its owner refreshes it.
// Whoever's signature is in the safe leads; everyone else watches the safe, and
// tries again when it is empty.
//
//	candidate ── create ──▶ safe empty?  yes ─▶ elected ─▶ refresh, refresh, refresh …
//	    ▲                        │ no                         │ refresh refused, or too late
//	    │                        ▼                            ▼
//	    └──── vacant ◀──── watch the signature            defeated ─▶ campaign again
//
// [Candidate.Run] is the heart: the return of the function that it calls is the
// only honest signal that the work has stopped. [Candidate.Campaign] and
// [Candidate.Notify] are for programs of another shape, [Candidate.TryCampaign]
// and [Candidate.TryRun] for those that wait for nobody. [Current] and [Watch] are for those who only
// want to know who leads. Package lock is for people who want a lock, and package
// fence for services that refuse the writes of old leaders.
//
// # Trust
//
// A leader trusts its lease until
//
//	start of the last successful request + TTL − margin
//
// counted from before the request was sent, never from the reply, and only for a
// reply that proves that the record in the safe is still its own. At that
// instant a timer that nobody has to service ends the term's context, even if a
// call to the store hangs. Time that the system was suspended counts.
//
// The margin must pay for clocks of different rates and for the work's reaction.
// Let ρ bound how far any clock's rate is from true, T be the TTL, G the margin
// and W the time from the end of the context to the end of the work's effects.
// The store does not let another in before T/(1+ρ) has passed since the request;
// the leader has stopped by (T−G)/(1−ρ). So there is one leader at a time if
//
//	G ≥ T·2ρ/(1+ρ) + W
//
// New refuses a margin below this with ρ = 1 % and W = 50 ms; the default is a
// tenth of the TTL, or that least. Work that needs longer to stop needs a larger
// margin. New also refuses a margin that leaves no time to try a refresh twice:
// a refresh is sent every R = (T−G)/3 and may take R, so that
// R + 2·R + G ≤ T.
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
// Otherwise nothing but the token stops the effects of a leader that is none any
// more.
//
// # What is promised
//
//   - At every instant at most one term of an election is alive, whatever the
//     network, the store or the scheduler does, as long as clocks keep to ρ and
//     the store keeps what its Guarantees say (each backend documents them).
//   - Each term's token is larger than that of every earlier one. A process that
//     is frozen between a look at its term and a write cannot be stopped by any
//     lease; a resource that refuses smaller tokens stops it.
//   - The safe is given up only after the work has returned.
//   - A reply that was lost is cleared up, not guessed at: a candidate recognises
//     its own record by a nonce, and takes it over or removes it.
//   - A record that this library did not write is somebody's lock. It is waited
//     for, and never touched.
//   - A waiting candidate asks the store nothing where the store can push. (The heir
//     keeps its record, and one that waits in line with other programs its place:
//     kv.Queue.)
//   - When Run, Campaign, Watch or Resign has returned, nothing that it started
//     is left. A store call or a health check that ignores its context delays
//     that, and nothing else.
//
// # Succession
//
// Candidates that wait stand for a second safe, the heir's, beside the leader's. (Where
// the order prefers nobody to them, they try the leader's first, once.)
//
//	candidates ── create, or displace ──▶ heir's safe ── create, or be handed ──▶ leader's safe
//	              by the order                           it by the leader
//
// Only the heir watches the leader's safe; all others watch the heir's. So the end
// of a leader wakes one process. A leader that leaves puts the heir's signature into
// its own safe, in one write, when its work has stopped. The heir leads at once if the
// lease of its own place backs that record, and is trusted for a third of the TTL more;
// else it refreshes the record first. If the leader crashes, the heir claims the safe as
// it becomes vacant.
//
// An order ([FirstCome], which is the default, [ByRank], [Ring], [NextInLine], or one's
// own) decides who displaces whom as heir, and never who leads: it can be wrong or late without two
// leaders. A leader gives way to an heir that comes before it and has been heir for
// Options.Stability. Candidates whose terms keep ending early wait longer each time.
// [Term.Transfer], [RequestTransfer] and Options.MaxTerm hand over on purpose.
//
// With Options.NoHeir nobody stands for the second safe: all watch the leader's, and some
// of them claim it when it becomes vacant. By default that is so in a store that keeps
// lines (kv.Queue).
//
// IDs should be unique: an order knows candidates by them.
//
// # Once per tick
//
// The safe is free again as soon as the work is done, so work that every host starts
// at the same tick would be done by one host after the other. With Options.Hold the
// election stays closed for a while after the work began: the candidate that is
// elected puts a record into a third safe, NAME:hold, before its work begins. Nobody
// refreshes or deletes it; it fades, whatever becomes of the candidate. A candidate
// that is elected meanwhile waits for its end; TryCampaign and TryRun give up instead.
// [CurrentHold] shows it.
//
// # Failures
//
//	the leader's process dies        the next is elected within the TTL (see the store's Lifetime)
//	the leader is cut off            its term ends a margin before the TTL is over; then the same
//	the leader is paused or asleep   the same; when it wakes, its term has ended
//	the leader is unhealthy          it steps down once its work has returned
//	its record is deleted, replaced  its term ends within a second, as soon as the store tells
//	the store is down                nobody leads once trust has run out; all try again
//	leader and heir die at once      the others elect an heir as its record fades, and that a leader
//	the store is slow                a term survives answers that take up to a third of the TTL
package election
