// Package etcdkv keeps safes in etcd: one key for each safe. A leader's record shares a
// lease with others of its process; any other record has a lease of its own. Choose it
// where the service has an etcd already. It needs no care for clocks, and survives the
// loss of a server.
//
//	client, err := clientv3.New(etcdkv.Quiet(clientv3.Config{Endpoints: endpoints}))
//	if err != nil {
//		return err
//	}
//	defer client.Close()
//	store := etcdkv.New(client, &etcdkv.Options{Prefix: "elections/"})
//	candidate, err := election.New(store, "billing", nil)
//	if err != nil {
//		return err
//	}
//	return candidate.Run(ctx, bill) // func(context.Context, *election.Term) error
//
// It can also lay safes out as the locks and elections of etcd's own client do
// (package go.etcd.io/etcd/client/v3/concurrency, etcdctl lock and elect), so
// that old and new programs share a lock for as long as a rollout takes, and
// publish values as those do: see [Queue], [Claim] and [Options].Plain.
//
// # Guarantees
//
// A write is one Txn, and Raft puts all Txns in one order. Expiry is judged by etcd's
// leader with its monotonic clock, so no wall clock matters; it is never early, except as
// described below. Safety holds through crashes and partitions of clients and servers, as long
// as a majority of the servers keeps what it has acknowledged, and no leader of etcd
// pauses for a TTL.
//
// What weakens it:
//
//   - A leader of etcd that pauses for a TTL (a stopped process, a starved or frozen
//     host) may revoke leases when it goes on, before it learns that it was replaced,
//     although its successor has renewed them: its requests to revoke are forwarded, and
//     do not say from which term they come (etcd issue 15247). The record is gone while
//     its owner trusts it. The owner learns of it from [Store.Watch], or at its next
//     refresh; until then two may lead. No release up to 3.7.3 prevents it, and neither
//     does this package. It was seen in about a third of such pauses, and two leaders in
//     one of thirteen. Have resources check the fencing token.
//   - A lease does not know of its key. After an operator's delete or another program's
//     put, etcd keeps the lease alive all the same, and another owner may have the key.
//     So [Store.Refresh] looks at the key each time, and an owner learns of its loss at
//     its next refresh, or at once from [Store.Watch].
//   - Each change of etcd's leader starts the lives of all leases anew, longer by
//     an election timeout: failover takes longer then, and never less than the
//     TTL. [Store.Lifetime] has the times of a cluster without such changes.
//   - A new leader of etcd denies a lease that its predecessor has just granted, until it
//     has caught up. So that answer alone does not mean that a record is lost:
//     [Store.Refresh] and [Queue.Stay] look at the key, and a hand-over reads and asks
//     again. If the lease turns out to be in use, they return an error that leaves the
//     outcome open, and the next attempt tells.
//   - An old Election client looks at its key only when it writes. It may believe that it
//     leads long after its key is gone, and no store can show that. Its fence is smaller
//     than the token of the present leader.
//   - Tokens are revisions. A cluster that was restored from a snapshot goes
//     back to the snapshot's revision, unless it is restored with
//     --bump-revision and --mark-compacted. There, [Store.RefreshAll] would take another
//     program's write for its own record if that write gets the same revision.
//   - The client sends a Txn again, up to a hundred times, if the answer has the status
//     Canceled or DeadlineExceeded while the caller's own context has not ended; a proxy
//     in between may give such an answer. Nothing is carried out twice, since each Txn is
//     conditional. Create, Join and a takeover recognise their own record by its lease
//     and signature. But a published value, a hand-over or a delete is reported as
//     [kv.ErrStale], although it was carried out. Config.MaxUnaryRetries = 1 of the
//     client ends that, but makes a call fail whenever an authentication token has
//     expired. If the first copy of a Create reaches etcd when the record has been
//     removed again, the record is there once more, with no owner. It lives for one TTL
//     or, if it shares a lease, until that lease is given up, after 240 TTLs at most.
//
// Put a write that only the leader may make into a Txn with [Store.Guard]. It is refused
// after the term, however late it comes. Guard compares the beginning of the text, which
// has the signature, and the key's create revision. So it survives refreshes and new
// values, and ends with the term.
//
// In a line (a [Queue], or the layout Claim) one leader follows another as in a Mutex: the
// client whose key was created first has the safe, and keeps it until the key goes. So
// the Txn of a Create requires that the line is empty, and that of a takeover or
// hand-over that no other client is in it; if one is, it returns [kv.ErrStale]. With a
// Queue, old and new clients are served in the order in which they came. In the layout
// Claim a candidate does not wait in line, and never leads while old clients wait
// in theirs.
//
// Expiry judged by observers: [NewObserved] makes a store whose keys have no lease. Each
// refresh is a write that gives the key another ModRevision, and a candidate that has
// seen one ModRevision for the record's TTL, by its own clock, may put its record there,
// on condition that the key still has that ModRevision. Package internal/observer says
// why two never lead.
//
// Choose it for a short failover: TTLs go down to 500 ms, while the shortest lease lasts
// 2 s and may be revoked a second late. A leader of etcd that pauses revokes nothing, a
// change of leader prolongs nothing, and no lease is left over. For TTLs of ten seconds
// it hardly pays: the leader's three writes per TTL go through the log, are synced, and
// are kept until a compaction, while keep-alives touch no disk. And etcd pushes each
// write to all candidates that wait. A candidate that has just begun to watch has to see
// a dead record for a whole TTL, however old the record is. A dead owner's record stays
// until the next candidate comes, or an operator removes it.
//
// The rest is the same: a write is one Txn, and the token is the revision of the write
// that brought the signature in. An operator who deletes the key frees the safe at once,
// although its owner trusts its record until its watch or its next refresh tells of that.
// If an etcd is restored from a snapshot, the refreshes and revisions since the snapshot
// are lost here too.
//
// The text at the key says that observers judge ("observed":true). To candidates of a
// [Store] it is another program's lock, which nothing ends. To candidates of an
// [Observed], the records of a Store are the same, and so is this package's own text with
// a lease. Never mix the two in one election: at one key they keep each other out, but
// one kind waits for ever once an owner of the other has died. An Observed does not see
// lines (a Queue, the layout Claim) and the locks of etcd's own client: a candidate of
// each would lead. Values cannot be plain, since other programs would not see that a
// record has to be refreshed. To change from one to the other, stop all candidates first,
// and use etcdctl del to remove what an owner has left.
//
// [Observed.Guard] guards a Txn of your own, as [Store.Guard] does.
//
// A Create or a hand-over that the client itself has sent twice is reported as
// [kv.ErrHeld] or [kv.ErrStale], although it was carried out: there is no lease, so
// nothing distinguishes it from an older write of the same signature. The engine finds
// its record.
//
// # Records
//
// The key is [Options].Prefix, the name and Suffix, byte for byte, together up to
// 64 KiB; the value is the record's text form (kv.Encode), up to 1 MiB.
//
//	etcdctl get --prefix elections/
//	etcdctl lease timetolive 694d9a1c5e7f2b05 --keys
//
// The token is the revision of the write that brought the signature in. The text of that
// write leaves it out; when the value or the note changes, the token is written into the
// text. A hand-over is a put over a live key: it keeps the key's create revision, but
// gets a token of its own. Revision is the key's ModRevision, Lease the lease's ID in
// hexadecimal.
//
// TTLs are rounded up to whole seconds, and no lease is shorter than one and a half
// election timeouts of the servers (2 s by default). Record.TTL is the TTL that was
// granted or, for a shared lease, what was left of it when the record was created.
// Records of leaders share leases ([Store.Create], [Store.RefreshAll]). The heir's own
// record and the record that is handed over to the heir share the heir's lease, until the
// latter moves to a lease that leaders share; no other record shares it. The Txn of a
// hand-over requires that the lease has a key: an heir without a record is no heir. The
// Txn of HandOver requires that this key is the heir's own, as it was read, and renews
// nothing.
//
// Every other value at the key is foreign. A record whose key has no lease, ours or not,
// is permanent: it stays until somebody deletes it. If another program puts something at
// the key, that detaches the owner's lease.
//
// In a line, each client has a key: prefix, name, "/" and the lease's ID. The name has no
// "/". Put no other keys there: each would block the whole line.
//
//	locks/reports/694d9a1c5e7f2b05     prefix "locks/", name "reports"
//
// The token is the key's create revision, for old clients too. They call it their fence,
// so the tokens of both kinds are in the order in which they lead. A new value keeps the
// key; a takeover or hand-over deletes it and creates another, with the other lease, in
// one Txn. A key is ours only if it has the lease that its name says; any other is
// foreign, and is permanent if it has no lease.
//
// With [Options].Plain, the value alone is at the key, and the text without it
// at a companion: the name, ".election" and what follows the name.
//
//	jobs/leader              10.0.0.7:80
//	jobs/leader.election     {"election":1,"signature":…}
//	locks/reports/694d9a1c5e7f2b05              10.0.0.7:80
//	locks/reports.election/694d9a1c5e7f2b05     {"election":1,"signature":…}
//
// One Txn writes both, with one lease. The record is ours if both keys have the same
// ModRevision and the same lease. Otherwise the value is foreign; if there is no value,
// the companion means nothing. A name whose key would end in ".election" is refused, with
// plain values or without. This package does not touch what another program has put at
// such a key: until it is gone, a create returns a [kv.ErrHeld] whose text names the key,
// and no watch tells of that. The next record replaces what an old record of ours has
// left there with its lease. If only a companion is changed, watches do not hear of it;
// the owner learns of the loss at its next refresh or write.
//
// The record of a member of a roster ([kv.Roster]) is at one key in every layout, and has its text
// there: prefix, name, ":roster:", the member's own key, suffix. Its token is a revision, as for any
// record at one key, so tokens grow across all members.
//
// # Requirements
//
// etcd 3.6.5 or later, or 3.5.23, or 3.4.38; tested with 3.6.5. Servers before those may
// confirm a keep-alive of a lease that they are about to revoke, and those before 3.5.13
// do so after they have lost the leadership. Then the record is still there when it is
// looked at, but ends early. If authentication protects the keys, use 3.6.11 or 3.5.30:
// before those, users without permission could change leases.
//
// The user needs the permission readwrite on the prefix. (An election that has a
// succession or accepts requests also has names with ":heir" and ":request" at the end, and
// one with a hold has ":hold". With a roster, names have ":roster:" and more behind them.) If users log in with a password, the client logs in anew
// for each keep-alive and each stream of watches (RefreshAll once for 127 records). The
// server makes that costly on purpose: prefer client certificates.
//
// Give the client all endpoints, so that it can leave a server that is cut off,
// and set DialKeepAliveTime and DialKeepAliveTimeout (10 s and 5 s, say). Without
// them, a connection that has died without a sign is noticed when a watch gets
// no answer to its next look: after [Options].Backstop and ten seconds, about.
//
// A client logs a warning for each request that fails, even if its caller has cancelled
// it; a candidate does so when it no longer needs an answer. Wrap the client's
// configuration in [Quiet] to be warned of everything else. There is no such help for a
// client that other code has made: it logs before this package hears of it.
//
// Do not put a proxy in between that answers Unavailable by itself: the client then
// repeats a keep-alive without a pause until the context ends, some ten thousand times
// per second.
//
// All watches of a safe by one Store share their requests. Each ends with its own
// context, but its requests carry none of that context's values, such as outgoing gRPC
// metadata.
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
//	Members          1 for 500 records: read
//	AwaitMembers     1: watch
//
// A Create of a record that may share a lease takes 3 for the first of 500 records. It
// keeps the lease alive if nobody has done so for 900 ms or an eighth of the TTL; after a
// Delete that is one more round trip. A Create of any other record, after a Delete of the
// same safe, takes 2: it uses the lease that was granted beside the Delete. A Delete of a
// record that has changed since the caller read it takes 3: Txn (w), read, Txn (w). A
// hand-over to an heir whose lease etcd denies is refused after 4 or 5, none of which is
// a write.
//
// RefreshAll sends a keep-alive for each lease, as Refresh does, but those of 127 records
// share a stream, and one Txn replaces their reads; with Plain it is 63 records. A record
// that may share a lease and has one of its own moves to a shared lease with the first
// batch that it is in: the Txn writes it anew (w). A Txn that is refused costs another
// Txn, and 2 for each record that was the reason. In a line,
// RefreshAll costs what a Refresh of each record does. If the client's Lease is wrapped,
// as by package namespace of etcd's client, each keep-alive has its own stream.
//
// A Refresh took 100 µs of CPU here and 120 µs in the server, one of 10,000 by RefreshAll 9
// and 14 µs. A member that does not lead asks the leader for each keep-alive: through one,
// a Refresh took 120 and 340 µs (in all servers together), one by RefreshAll 30 and 170 µs.
//
// All watches of a safe by one Store share a watch of etcd's, and each new one costs one
// read. While nothing changes, it sends one read per Backstop, which is a minute: none if
// RefreshAll proves the record sooner, and fewer at vacant safes if the Store watches
// more than 300. All watches of a Store share one stream, which has three goroutines
// here, and one of them is opened anew each Backstop to prove that the stream lives. A
// safe that is followed takes 3 to 4 KB:
//
//	go test ./backends/etcd -run '^$' -bench Follow -benchtime 10000x
//
// If the client's Watcher was replaced (package namespace does that), watches go through
// the replacement: each takes 13 KB and two goroutines, and is opened anew every
// Backstop.
//
// A change is pushed to each watch. With Plain, a watch reads a companion each time it
// begins, and with each change of what the safe holds. In a line, every watch hears of
// every client that comes and goes, and keeps all keys in memory with their values. A
// candidate that waits in line sends a Stay a few times per TTL to keep its place; any
// other sends nothing.
//
// With [NewObserved], each operation is one round trip, a refused Create two. Create,
// Swap, Refresh and Delete are one write. A candidate that waits sends nothing for a
// refresh: etcd pushes it. A leader with the shortest TTL, 500 ms, sent 27 messages in 4
// s, and a waiting candidate none:
//
//	go test ./backends/etcd -v -run 'CostsAFew|ObservedOperationCosts|AWaitingObserver'
//
// A record that was deleted, taken over or handed over, or has moved to another lease,
// leaves behind a lease that nobody keeps alive and that lasts for one TTL, unless other
// records share it. So does a Create, Join or takeover whose reply was lost; a lost Join
// also leaves a place in line for that long. The lease that is ready for the next Create
// lasts one TTL too, if no Create comes.
package etcdkv
