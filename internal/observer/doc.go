// Package observer makes a [kv.Store] of a store in which records do not expire by
// themselves: the observers of a record judge its expiry.
//
// Every refresh is a write and gives the record a new revision. An observer that has seen
// one revision unchanged for the record's TTL, on its own clock, takes the record for
// dead and may replace it, by a write on the condition that the store still holds
// exactly that revision. The store's clock is not used, so it cannot be wrong.
//
// # Why two never lead
//
// A leader sends a refresh at the time s, and trusts its lease until s + TTL − margin
// on the faster of its clocks. The refresh is carried out at some time c, not before
// s, and gives the record the revision v. Another candidate learns of v by an answer that
// arrives at some time o. Since v exists from c on, o is not before c. The candidate waits for
// the TTL from o, on the slower of its clocks, and then replaces the record if that has
// the revision v. There are two cases.
//
//   - The write is carried out. Then no refresh was carried out after the one at c,
//     because each gives another revision and none ever comes back. So the leader's trust
//     ended at s + TTL − margin at the latest, because none of its later refreshes was
//     answered. The other leads from o + TTL at the earliest, and s ≤ c ≤ o. The margin covers
//     clocks whose rates differ, just as it does where a store judges: what the
//     package documentation of election says about it holds here with the observer's
//     clock instead of the store's. The simulation shows that the bound is tight
//     here too: with a microsecond less of margin, two lead.
//   - The write is refused. Then the leader lives, or another candidate came first, and
//     the candidate that was refused begins to wait again.
//
// A refresh that is still on its way when the record is replaced finds another
// revision, and is refused; so is a replacement that is late. Nothing that a network
// delays, repeats or reorders is carried out at a revision that it was not meant for.
//
// Nor does it matter how an observer learns of v. A watch that lags, or a reply
// that is out of date, makes o later than necessary. An observer that missed later
// revisions believes that the leader is dead, and its write is refused.
//
// # Which clock
//
// The observer reads two clocks of its host, one of which stands still while the host
// is suspended, and uses the one that shows less. A candidate that wants to replace
// another's record may only err on the slow side; a leader uses the larger of the two. So a
// clock that is set forward, by hours or years, does not end a record. If one is set back,
// waiting begins again.
//
// The assumptions are the same as for leaders: clocks run at rates within the
// stated drift, and the store keeps what it has acknowledged. A store that loses a
// write, for example in a failover, or restores an old state, loses refreshes and owners here
// as it does where it judges. The fencing token protects against that.
//
// # What is known
//
// A [Store] keeps what it knows in memory: which revision of a record it has seen, and
// since when. Its own writes count, and so does each answer that it gets, even that of a
// refused create. A process that has just started knows nothing, and waits for a TTL before
// it takes over a record that was dead long before. So does a program that runs once an hour
// and makes one attempt: it is never elected if the leader has died without giving the safe up.
// Let it campaign for longer than a TTL.
//
// The number of remembered names that are not watched is limited, but only a process with
// tens of thousands of them will notice.
//
// # What readers see
//
// Records are the same as in any other store. A refresh changes nothing that a
// reader sees: the revision that callers get belongs to the content of the record. A
// publication or a hand-over has that revision as its condition, and is not refused
// because the owner has refreshed its record meanwhile. For this, the register's
// note begins with a number: the register's revision that the content has
// replaced:
//
//	{"election":1,"signature":"host-7/…","note":"17 {\"rank\":7}","ttl_ms":10000,"observed":true}
//
// A watch yields the vacancy when its own timer has judged, after one read of what the
// store holds. If that read is not answered, the watch ends with the error: an observer that is
// cut off does not know of a vacancy. If the owner turns out to live, it is yielded again.
//
// A foreign record is never judged, however old it is. A record that the store lets
// expire is foreign here, and the other way round: see [kv.EncodeObserved].
//
// # Where it comes from
//
// In Kubernetes' client-go (package leaderelection) and in pglock, candidates judge in this way.
// This package adds the argument that the margin of a leader covers an observer's clock, and
// that a sighting counts from the arrival of the answer. The simulation
// (internal/sim) plants the possible mistakes.
package observer
