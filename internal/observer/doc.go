// Package observer makes a [kv.Store] of a store whose records nobody but their
// observers lets expire: expiry judged by the observer.
//
// Every refresh is a write and gives the record a new revision. Whoever has seen one
// revision unchanged for the record's TTL, on its own clock, takes the record for
// dead and may replace it, by a write on the condition that the store still holds
// exactly that revision. No clock of the store is asked, so that none can be wrong.
//
// # Why two never lead
//
// A leader sends a refresh at the time s, and trusts its lease until s + TTL − margin
// on the faster of its clocks. The refresh is carried out at some time c, not before
// s, and gives the record the revision v. Another learns of v by an answer that
// arrives at some time o. As v came to be at c, o is not before c. It waits for the
// TTL from o, on the slower of its clocks, and then replaces the record if that has
// the revision v. There are two cases.
//
//   - The write is carried out. Then no refresh was carried out after the one at c,
//     as each gives another revision and none ever comes back; so the leader's trust
//     ended at s + TTL − margin at the latest, as no later refresh of it was answered.
//     The other leads from o + TTL at the earliest, and s ≤ c ≤ o. The margin pays for
//     clocks whose rates differ, just as it does where a store judges: what the
//     package documentation of election says of it holds here with the observer's
//     clock in the place of the store's, and the simulation shows the bound to be tight
//     here too: a microsecond less of margin, and two lead.
//   - The write is refused. Then the leader lives, or somebody else came first, and
//     whoever was refused begins to wait anew.
//
// A refresh that is still on its way when the record is replaced finds another
// revision, and is refused; so is a replacement that is late. Nothing that a network
// delays, repeats or reorders is carried out at a revision that it was not meant for.
//
// Neither does it matter how an observer learns of v. A watch that lags, or a reply
// that is out of date, makes o later than it might be; an observer that missed later
// revisions believes that the leader is dead, and its write is refused.
//
// # Whose clock
//
// Two clocks of the observer's host are read, one of which stands still while the host
// is suspended, and the one counts that shows less. Who opens a right over another's
// may err on the slow side alone; a leader takes the larger of the two. A clock that
// is set forward, by hours or years, therefore judges nothing. If one is set back,
// waiting begins anew.
//
// What is assumed is what is assumed of leaders: that clocks run at rates within the
// stated drift, and a store that keeps what it has acknowledged. A store that loses a
// write, in a failover say, or restores an old state, loses refreshes and owners here
// as it does where it judges; the fencing token is for that.
//
// # What is known
//
// What a [Store] knows is in its memory: which revision of a record it has seen, and
// since when. Its own writes count, and each answer that it gets, of a create that is
// refused too. A process that has just begun knows nothing, and waits for a TTL before
// it takes over what was dead long before. So does a program that runs once an hour
// and asks once: it never gets in if somebody has died without giving the safe up.
// Let it campaign for longer than a TTL.
//
// Of names that nobody watches, so many are remembered that it takes a process with
// tens of thousands of them to notice.
//
// # What readers see
//
// Records are what they are in any other store. A refresh changes nothing that a
// reader sees: the revision that callers are given is that of what the record says. A
// publication or a hand-over is on the condition of that one, and is not refused
// because the owner has refreshed its record meanwhile. To that end the register's
// note has a number before it, of the register's revision that the content took the
// place of:
//
//	{"election":1,"signature":"host-7/…","note":"17 {\"rank\":7}","ttl_ms":10000,"observed":true}
//
// A watch yields the vacancy when its own timer has judged, after one look at what the
// store holds. If that look is not answered it ends with the error: who is cut off
// does not know of a vacancy. If the owner turns out to live, it is yielded again.
//
// A foreign record is never judged, however old it is. A record that stores let
// expire is a foreign one here, and the other way round: see [kv.EncodeObserved].
//
// # Where it comes from
//
// Kubernetes' client-go (package leaderelection) and pglock let candidates judge so.
// That the margin of a leader covers an observer's clock, and that the time of a
// sighting is that of the answer, is the argument of this package; the simulation
// (internal/sim) plants what can be done wrong.
package observer
