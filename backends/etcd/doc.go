// Package etcdkv keeps safes in etcd: one key for each safe. A leader's record shares a lease
// with others of its process; any other has a lease of its own.
//
// It can also lay safes out as the locks and elections of etcd's own client do
// (package go.etcd.io/etcd/client/v3/concurrency, etcdctl lock and elect), so
// that old and new programs share a lock for as long as a rollout takes, and
// publish values as those do: see [Layout] and [Options].Plain.
//
// # Guarantees
//
// A write is one Txn, and Raft puts all Txns in one order. Expiry is judged by
// etcd's leader with its monotonic clock, so no wall clock matters; it is never
// early, with the exception below. Safety holds through crashes and partitions of
// clients and servers, as long as a majority of the servers keeps what it has
// acknowledged, and no leader of etcd pauses for a TTL.
//
// What weakens it:
//
//   - A leader of etcd that pauses for a TTL (a stopped process, a starved or
//     frozen host) may revoke leases when it goes on, before it learns that it was
//     replaced, although its successor has renewed them: its requests to revoke
//     are forwarded, and nothing in them tells of whose term they are (etcd issue
//     15247). The record is gone while its owner trusts it. The owner learns of it
//     from [Store.Watch], or at its next refresh; until then two may lead. No
//     release up to 3.7.3 prevents it, and this package does not: it was seen in
//     about a third of such pauses, and two leaders in one of thirteen. Have
//     resources check the fencing token.
//   - A lease does not know of its key. After an operator's delete or another
//     program's put, etcd goes on keeping the lease alive, and another owner may
//     have the key. So [Store.Refresh] looks at the key each time, and an owner
//     learns of its loss at its next refresh, or at once from [Store.Watch].
//   - Each change of etcd's leader starts the lives of all leases anew, longer by
//     an election timeout: failover takes longer then, and never less than the
//     TTL. [Store.Lifetime] has the times of a cluster without such changes.
//   - A new leader of etcd denies a lease that its predecessor has just granted, until
//     it has caught up. So no record is taken for lost by that answer alone:
//     [Store.Refresh] and [Store.Stay] look at the key, and a hand-over reads and asks
//     again. If the lease turns out to be in use, they return an error that leaves the
//     outcome open, and the next try tells.
//   - An old Election client looks at its key only when it writes. It may believe
//     for long that it leads after its key is gone, and no store can show that.
//     Its fence is smaller than the token of whoever leads now.
//   - Tokens are revisions. A cluster that was restored from a snapshot goes
//     back to the snapshot's revision, unless it is restored with
//     --bump-revision and --mark-compacted. [Store.RefreshAll] would take another's
//     write there for its own record if it gets the same revision.
//   - The client sends a Txn again, up to a hundred times, if the answer has the
//     status Canceled or DeadlineExceeded while the caller's own context goes
//     on, as a proxy in between may answer for itself. Nothing is carried out
//     twice, since each Txn is conditional. Create, Join and a takeover
//     recognise their own record by its lease and signature. A published value,
//     a hand-over or a delete is reported as [kv.ErrStale] then, although it was
//     carried out. The client's Config.MaxUnaryRetries = 1 ends that, and makes a call fail
//     whenever an authentication token has expired. If the first copy of a Create
//     comes to etcd when the record has been removed again, the record is there
//     once more, for nobody. It lives for one TTL, or, where it shares a lease,
//     until that is given up, after 240 TTLs at most.
//
// A write that is to be made by the leader or not at all goes into a Txn with
// [Store.Guard]. It is refused however late it comes. Guard compares the beginning of the
// text, which has the signature, and the key's create revision: it survives refreshes and
// new values, and ends with the term.
//
// In a line (the layouts Queue and Claim) one leader follows another as in a
// Mutex: whoever's key was created first has the safe, and keeps it until the
// key goes. So a Create requires in its Txn that the line is empty, and a
// takeover or hand-over that nobody else is in it; [kv.ErrStale] says that
// somebody is. In the layout Queue, old and new clients are served in the order
// in which they came. In the layout Claim a candidate stands in no line, and
// starves while old clients stand in theirs.
//
// Expiry judged by observers: [NewObserved] makes a store whose keys have no lease.
// Each refresh is a write that gives the key another ModRevision, and a candidate
// that has seen one ModRevision for the record's TTL, by its own clock, may put its
// record there, on the condition that the key still has it. Why two never lead is
// told in package internal/observer.
//
// Choose it for a short failover: TTLs go down to 500 ms, where the shortest lease
// lasts 2 s and may be revoked a second late. A leader of etcd that pauses revokes
// nothing, a change of leader prolongs nothing, and no lease is left over. For TTLs of
// ten seconds it hardly pays: the leader's three writes per TTL go through the log, are
// synced and kept until a compaction, where keep-alives touch no disk, and each is
// pushed to all who wait. A candidate that has just begun to watch has to see a dead
// record for a whole TTL, however old it is. What a dead owner has left stays until the
// next candidate comes, or somebody removes it.
//
// The rest is as it was: a write is one Txn, and the token is the revision of the write
// that brought the signature in. An operator who deletes the key frees the safe at once,
// although its owner trusts it until its watch or its next refresh tells it. What an
// etcd loses that is restored from a snapshot, refreshes and revisions among it, is lost
// here too.
//
// The text at the key says that observers judge ("observed":true). To candidates of a
// [Store] it is somebody's lock, which nothing ends; so are their records to those of an
// [Observed], and so is our own text with a lease. Never mix the two in one election:
// at one key they keep each other out, but one kind waits for ever once an owner of the
// other has died. Of lines (the layouts Queue and Claim) and of the locks of etcd's own
// client an Observed knows nothing: both would lead. Values cannot be plain, since other
// programs would not see that a record has to be refreshed. To change from one to the
// other, stop all candidates first, and remove with etcdctl del what an owner has left.
//
// [Observed.Guard] is for a Txn of one's own, as [Store.Guard] is.
//
// A Create or a hand-over that the client itself has sent twice is reported as
// [kv.ErrHeld] or [kv.ErrStale], although it was carried out: without a lease that
// nobody else knows, nothing tells it from an older write of the same signature. The
// engine finds its record.
//
// # Records
//
// The key is [Options].Prefix, the name and Suffix, byte for byte, together up to
// 64 KiB; the value is the record's text form (kv.Encode), up to 1 MiB.
//
//	etcdctl get --prefix elections/
//	etcdctl lease timetolive 694d9a1c5e7f2b05 --keys
//
// The token is the revision of the write that brought the signature in. The
// text of that write leaves it out; when value or note change, the token is written
// into the text. A hand-over is a put over a live key: it keeps the key's create
// revision, and gets a token of its own nevertheless. Revision is the key's
// ModRevision, Lease the lease's ID in hexadecimal.
//
// TTLs are rounded up to whole seconds, and no lease is shorter than one and a
// half election timeouts of the servers (2 s by default). Record.TTL is what was
// granted, or left of a shared lease when the record was created. Records of leaders share leases ([Store.Create], [Store.RefreshAll]). A record in
// the safe of the heir and one handed over to it share the heir's lease, which others never
// do, until the latter moves to a lease that leaders share. A hand-over requires, in its Txn,
// that the lease has a key: an heir without a record is no heir. That of HandOver requires that
// this is the heir's own, as it was read, and renews nothing.
//
// Every other value at the key is foreign. A record whose key has no lease, ours
// or not, is permanent: it stays until somebody deletes it. What another program
// puts at the key detaches the owner's lease.
//
// In a line, everybody has a key: prefix, name, "/" and the lease's ID. The name
// has no "/", and nothing else lies there: what does is in everybody's way.
//
//	locks/reports/694d9a1c5e7f2b05     prefix "locks/", name "reports"
//
// The token is the key's create revision, of old clients too. It is what they
// call their fence, so the tokens of both kinds are in the order in which they
// lead. A new value keeps the key; a takeover or hand-over deletes it and creates
// another, with the other lease, in one Txn. A key is ours only if it has the
// lease that its name tells; any other is foreign, and permanent if it has no
// lease.
//
// With [Options].Plain, the value alone is at the key, and the text without it
// at a companion: the name, ".election" and what follows the name.
//
//	jobs/leader              10.0.0.7:80
//	jobs/leader.election     {"election":1,"signature":…}
//	locks/reports/694d9a1c5e7f2b05              10.0.0.7:80
//	locks/reports.election/694d9a1c5e7f2b05     {"election":1,"signature":…}
//
// One Txn writes both, with one lease. The record is ours if both have the same
// ModRevision and the same lease; else the value is foreign, and if there is
// none, the companion means nothing. A name whose key would end in ".election" is
// refused, with plain values or without. What somebody else has put at such a
// key is left alone: a create returns [kv.ErrHeld], whose text names the key,
// until it is gone, and no watch tells of that. What an old record of ours has
// left there with its lease, the next one replaces. A watch is not told of a
// companion that alone is changed; its owner learns of the loss at its next
// refresh or write.
//
// # Requirements
//
// etcd 3.6.5 or later, or 3.5.23, or 3.4.38; tested with 3.6.5. Servers before
// those may confirm a keep-alive of a lease that they are about to revoke, and
// the ones before 3.5.13 do so after they were deposed as leaders. The record is
// still there when it is looked at, and fades before its time. If authentication
// protects the keys, take 3.6.11 or 3.5.30: before, users without permission
// could meddle with leases.
//
// The user needs the permission readwrite on the prefix. (Names with ":heir" and
// ":request" at the end are beside each election that has a succession or heeds
// requests, ":hold" where there is a hold.) Where users log in with
// a password, the client logs in anew for each keep-alive and each stream of
// watches (RefreshAll once for 127 records), which the server makes costly on
// purpose: prefer client certificates.
//
// Give the client all endpoints, so that it can leave a server that is cut off,
// and set DialKeepAliveTime and DialKeepAliveTimeout (10 s and 5 s, say). Without
// them, a connection that has died without a sign is noticed when a watch gets
// no answer to its next look: after [Options].Backstop and ten seconds, about.
//
// A client logs a warning for each request that fails, those included that its caller
// has called off: a candidate does so when an answer is of no use any more. Wrap its
// configuration in [Quiet] to be warned of everything but that. For a client that
// others have made nothing can be done: it logs before this package hears of it.
//
// Do not put a proxy in between that answers Unavailable by itself: the client
// repeats a keep-alive without a pause until the context ends, some ten thousand
// times a second.
//
// All watches of a safe by one Store share their requests. Each ends with its own context,
// but its requests carry none of the values of that, such as outgoing gRPC metadata.
//
// # Cost
//
// In round trips; w is a write, which the cluster logs and syncs:
//
//	Create           3: read, grant (w), Txn (w)
//	Create, refused  1: read; in a race also grant and Txn (2 w)
//	Create, shared   2: read and, now and then beside it, keep-alive; Txn (w)
//	… refused        1: read and keep-alive; in a race also Txn (w)
//	… after Delete   1: Txn (w)
//	Join             3: read of the line, grant (w), Txn (w)
//	Stay             2: keep-alive, read
//	Refresh          2: keep-alive, read
//	RefreshAll       2 for 127 records: keep-alives, Txn
//	Swap, new value  2: read, Txn (w)
//	Swap, takeover   3: read, grant (w), Txn (w)
//	Swap, hand-over  4: read, keep-alive, timetolive, Txn (w)
//	HandOver         1: Txn (w)
//	Delete           1: Txn (w) and, beside it, grant (w)
//	Delete, shared   1: Txn (w)
//	Get              1: read; with Plain another, of the companion
//	Watch            2 to begin with; with Plain 3
//
// A Create of a record that may share a lease takes 3 for the first of 500 records. It keeps the
// lease alive if nobody has done so for 900 ms or an eighth of the TTL; after a Delete that is one
// more round trip. That of
// another, after a Delete of the same safe, takes 2: it uses the lease that was granted beside
// the Delete. A Delete of a record that has changed since the caller knew it takes 3: Txn (w),
// read, Txn (w). A hand-over to an heir whose lease etcd denies is refused after 4 or 5, of
// which none is a write.
//
// RefreshAll sends a keep-alive for each lease, as Refresh does, but those of 127 records
// share a stream, and one Txn stands for their reads; with Plain it is 63 records. A record that
// may share a lease and has one of its own moves with the first batch that it is in: the Txn
// writes it anew (w). A Txn that is refused costs another one, and 2 for each record that was
// the reason. In the layouts Queue and Claim it costs what a Refresh of each does. Where the
// client's Lease is wrapped, as by package namespace of etcd's client, each keep-alive has its
// own stream.
//
// A Refresh took 100 µs of CPU here and 120 µs in the server, one of 10,000 by RefreshAll 9
// and 14 µs. A member that does not lead asks the leader for each keep-alive: through one,
// a Refresh took 120 and 340 µs (in all servers together), one by RefreshAll 30 and 170 µs.
//
// All watches of a safe by one Store share a watch of etcd's, and each new one costs one
// read. While nothing changes it sends one read each Backstop, which is a minute; none if
// RefreshAll proves the record sooner, and fewer at vacant safes if the Store watches more than 300. All
// watches of a Store share one stream, which has three goroutines here, and one of them is
// opened anew each Backstop to prove that the stream lives. A safe that is followed takes
// 3 to 4 KB:
//
//	go test ./backends/etcd -run '^$' -bench Follow -benchtime 10000x
//
// If somebody has replaced the client's Watcher (package namespace does), watches go through
// that one: 13 KB and two goroutines each, and each is opened anew every Backstop.
//
// A change is pushed to each watch. With Plain, a watch reads a companion at its beginnings
// and with each change of what the safe holds. In a line every watch is told of everybody
// who comes and goes, and keeps all keys in memory with their values. A candidate that waits
// in line stays there by a Stay a few times per TTL; one in the layouts OneKey and Claim sends
// nothing.
//
// With [NewObserved], each of them is one round trip, a refused Create two, and Create,
// Swap, Refresh and Delete are one write. A candidate that waits sends nothing for a
// refresh, which is pushed. A leader with the shortest TTL, 500 ms, sent 27 messages in 4 s, and a
// waiting candidate none:
//
//	go test ./backends/etcd -v -run 'CostsAFew|ObservedOperationCosts|AWaitingObserver'
//
// A record that was deleted, taken over or handed over, or has moved to another lease, leaves
// behind a lease that nobody keeps alive and that lasts for one TTL, unless others share it. So
// does a Create, Join or takeover whose reply was lost; a lost Join leaves a place in line for
// as long. So does the lease that is ready for the next Create, if there is none.
package etcdkv
