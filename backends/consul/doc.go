// Package consulkv keeps safes in Consul's key/value store.
//
// # Guarantees
//
// At most one live record per safe, through crashes, restarts and partitions of
// Consul's servers as long as a majority keeps its data: every change is one
// transaction through Raft, and every read asks the leader to make sure that it
// still leads. Sessions are measured with the servers' monotonic clocks.
//
// A dead owner's safe opens late: Consul ends a session after twice its TTL, and
// grants no TTL below 10 s, so that others wait for 20 s at best
// ([Store.Lifetime] tells). A new leader of the servers starts all sessions
// anew, which makes it longer once more. A safe that is given up is open at once.
//
// A record that is refreshed within its TTL lasts. A refresh after twice the TTL
// may meet its session's end on the way and report success right before it. If Consul fails to
// commit that end, it tries again for 310 s, even if the session was renewed meanwhile
// (invalidateSession in the code of Consul 1.14.5): a leading server that was frozen for twice the
// TTL, and leads again within that time, may end the sessions of live owners.
//
// Locks in Consul are advisory. Who writes to a key in another way takes it from
// its owner, who learns it from its watch or at its next refresh.
//
// A session belongs to the node of the agent that the client talks to, and ends
// when that node leaves the catalog: by "consul leave" or "force-leave", or
// three days after it failed. A restart of the agent does no harm. Talk to an
// agent that stays as long as the candidates do, on their own host or a server.
//
// With checks (see [Options]) a failing check ends the session before its TTL
// has passed. The safe is then reported as vacant early; the lock-delay, which
// is at least the TTL, keeps everybody out until it has. Lock-delays are kept
// in the servers' memory: one that restarts and then leads has forgotten them.
// Without checks nothing rests on a lock-delay.
//
// A watch may notice a snapshot that an operator restores as late as when it
// next looks by itself (see Cost): Consul does not tell. One whose server has
// lost its leader without a word learns of a vacancy when its query ends, which
// may take its wait and some seconds more: 17 s were seen at a TTL of 1 s.
//
// Tokens go back where their index does: a snapshot that is restored into a new
// cluster has the index that it was taken at, and nobody there knows of the tokens
// drawn since. Before candidates start on such a cluster, seed a larger one (see
// Records), or give the resources that compare tokens new fences.
//
// Expiry judged by observers: [NewObserved] makes a store whose keys no session
// holds. Each refresh is a write that gives the key another ModifyIndex, and a
// candidate that has seen one ModifyIndex for the record's TTL, by its own clock,
// may put its record there, on the condition that the key still has it. Why two
// never lead is told in package internal/observer.
//
// Choose it for a short failover: TTLs go down to 500 ms, and a dead leader is followed
// after its TTL, where a session keeps others out for 20 s at best. No session is left
// over, no lock-delay or check matters, and no node that leaves the catalog ends a term.
// For long TTLs it hardly pays: each of the leader's three refreshes a TTL is a write to
// the Raft log, and ends the blocking query of everybody who waits, the leader's own
// too. A candidate that has just begun to watch has to see a dead record for a whole TTL,
// however old it is. What a dead owner has left stays until the next candidate comes, or
// somebody removes it.
//
// A key has the text form of the record, which says that observers judge
// ("observed":true), and flags of its own, 0x6f62736572766564. Each text has the index
// of the one it replaced, since Consul takes a write that changes nothing for none. The
// key goes when its owner gives it up. The token is the ModifyIndex of the write that
// brought the signature in. An operator who deletes the key frees the safe at once,
// although its owner trusts it until its watch or its next refresh tells it; a plain
// write over it leaves a foreign key, as it does over any record.
//
// To candidates of a [Store] an observed record is somebody's lock, which nothing ends,
// although no session holds its key; so are their records to those of an [Observed], and
// so is the key that they leave open, since a lock-delay may be running for an owner who
// still trusts it. Never mix the two in one election: they keep each other out, but one
// kind waits for ever once an owner of the other has died or resigned. Values cannot be
// plain. To change from one to the other, stop all candidates first, and delete the key.
//
// An observed safe must not share its key with the locks of other programs. An api.Lock
// refuses it for its flags (ErrLockConflict), and so does "consul lock". But to Consul a
// key without a session is free: a program that acquires a key without a look at its
// flags, as a script with ?acquire= does, takes it from a live leader, who
// learns it from its watch or at its next refresh. And where such a lock was, its key
// stays, and keeps observers out until somebody deletes it.
//
// There is no Guard: a transaction of Consul can compare a key's session, of which there
// is none, or its ModifyIndex, which each refresh moves. Have resources check the token.
//
// # Records
//
// A safe is the key with the prefix and the name, as api.Lock and "consul lock"
// use it (the latter at ".lock" under the prefix that it is given): locked by a
// session, with the lock flags 0x2ddccbc058a50c18. Its value is the text form of
// package kv. It is vacant if there is no such key, or if it has the lock flags
// and no session. Owners leave the key in place, as those programs do, with an
// empty value; vacant keys may be deleted at any time.
//
// api.Lock and this package exclude each other on one key. A locked key with
// another value is reported as foreign, and so is any key with other flags,
// locked or not: semaphores, the locks of Patroni and litefs, plain data. A
// plain write over a record, by "consul kv put" or in the web interface, clears
// the flags; what it leaves is foreign, and stays until somebody deletes it.
//
// A foreign session may have a lock-delay, 15 s by default. While it runs the
// safe is vacant, and a create returns an ErrHeld whose text says so. No watch
// tells of its end.
//
// The token is the ModifyIndex of the write that brought the signature in, an
// index of the Raft log: it grows over deleted keys, and over snapshots that are
// restored into the same cluster. The LockIndex does not.
//
// If the safe's last token is larger than the index of its key, the next token is
// the next number instead, until the index is larger again. So an election can go
// on from the tokens of another store, or of another cluster. Write the last one to
// the key while that is not there, with the flags of locks:
//
//	consul kv put -cas -modify-index=0 -flags=3304740253564472344 KEY '{"election":1,"token":LAST}'
//
// A record has such a token in its text, and leaves it at the key when it is
// deleted. It is lost if an operator deletes the key, with plain values its companion
// too, if an api.Lock has held it
// meanwhile, and if a leader with plain values died and one without follows, or a
// key whose text names no token is copied to another cluster. Observed records have
// none.
//
// A record's TTL is its session's, to the millisecond. The session is made for
// one record, and left to expire when that is deleted. Or up to 500 records of one Store share it
// (kv.Record.Shared): those of leaders, which the engine creates. It has the name "elections of
// one process", locks each key for one term only, and is never destroyed by this package. What is
// left behind under it, by a create whose answer was lost or by an owner that has given up, the
// Store looks for when it refreshes others, and lets go once nobody has asked to refresh it for two
// TTLs, as Consul would have done. If the client has lost its rights to such a key, the session
// takes no more records after a TTL. After 60 TTLs the other terms of the session end, and it
// expires. One such session that somebody destroys ends up to 500 terms.
//
// A hand-over to an heir's session
// makes it back two records. Since Consul does not tell what a session holds, the
// hand-over marks both, by a revision in their texts, for earlier versions of this
// package, which destroy the session of a record without a mark. The heir's own key is
// rewritten for it, which changes nothing in the heir's record. What is handed over must be an heir's own
// record, which was created by this package in this datacenter: the session's
// name tells where it is.
//
// A name is refused if its key would not arrive as it is: one that is longer
// than 4 KiB, has a slash at the front, "//", "." or ".." between slashes, or
// anything but printable UTF-8; and if it ends in ".election", as the companions
// of plain values do.
// A text may have 320 KiB, which limits a value and its note together to about
// 300 KiB, or 240 KiB if the value is no UTF-8 and not plain; in a hand-over that
// is for both texts together.
//
// With [Options].Plain a safe is two keys instead of the one, for programs that
// read the value where the holder of an api.Lock has put it: the key has the
// value and nothing else, and its companion, the key with ".election" at the end,
// has the record without the value. As with api.Lock, a value is a leader's only
// while a session holds the key: one that expires leaves it there.
//
// Each transaction of this package writes both keys, and one session holds both.
// So a companion proves that the key is a record of this library by having the
// same session and the same ModifyIndex: one transaction wrote both, and nobody
// has written or deleted either since. Any other key that is locked, by an
// api.Lock say, is foreign. Whether somebody holds the safe, the key alone tells.
//
// An owner whose companion is written over or deleted finds its record lost at
// the next refresh. Watches wait for changes of the key: they see that when they
// next look, or when the session has ended.
//
// What an old record leaves at the companion of a vacant key, the next one
// replaces. Any other text there is somebody else's, locked or not, and is not
// touched: the safe is reported as foreign until it is gone, which a watch sees
// when it next looks.
//
// # Requirements
//
// Consul 1.14, which is tested, or later. Namespaces and partitions of Consul
// Enterprise have not been tried.
//
// An ACL token needs key:read and key:write for the keys, for their companions if
// values are plain, and session:write for the agent's node, unless observers judge; where there is a
// succession, or requests are heeded, also for the keys with ":heir" and ":request"
// at the end, and with a hold (Options.Hold) with ":hold". A hand-over writes the heir's own keys too.
//
// TLS and authentication are those of the api.Client. Its http.Client must have
// no Timeout below 75 s, or watches end with it.
//
// # Cost
//
//   - Create: a read, a session, a transaction; if the safe is held, a read. After a
//     Delete of the same name and TTL, its session is there, and is renewed beside the
//     read. With a session that records share it is a read, a renewal, a transaction.
//   - Refresh: a consistent read, which costs the servers a round of heartbeats
//     and no write to disk, and a renewal, which the leader keeps in memory.
//   - RefreshAll: a transaction that only reads for 128 records (64 with plain values), and a
//     renewal for each of their sessions: one for 500 records that share it, and one for each that
//     was handed over, follows another term of the process, or is an heir's.
//   - Publish: a read and a transaction. Delete: the same and, beside it, a session for
//     the next Create.
//   - Hand-over: two reads, a renewal, a transaction; in one step ([Store.HandOver]) a
//     read and a transaction.
//   - A session whose record is gone, or that no Create has used, is left to expire: idle
//     for up to twice its TTL.
//   - Watch: one blocking query at a time. An unchanged safe costs one request
//     each minute ([Options].Backstop), or each two TTLs of a live record if
//     that is less, but at least 10 s. A refresh wakes nobody. At a key that is
//     written all the time, a watch sends four requests a second. Plain values
//     cost one more read each time it looks. The watches of one key over one
//     client share the query; of more than 16 keys the others are looked at in turns: see
//     below.
//
// With [NewObserved], each operation is one request, a refused Create two; Create, Swap,
// Refresh and Delete are one write. A watch sends one request for each refresh that it sees, and
// no more than four a second for any length of time. With the shortest TTL, 500 ms, a leader sent 51 requests
// in 4 s, half of them for its own watch, and a waiting candidate 24:
//
//	go test ./backends/consul -v -run 'CostsAFew|ObservedOperationCosts|AWaitingObserver'
//
// Connections: over HTTP/1.1 each request that is under way holds a connection. An agent takes
// 200 from one address by default (limits.http_max_conns_per_client), from all
// processes there, and answers 429 to the others. All stores of one api.Client
// therefore share these bounds: 16 blocking queries, 4 reads for other watches, 32
// requests of any other kind. The rest wait, in the order in which they came.
//
// The watches of one key share a blocking query. Keys that find no room for one are
// looked at in turns, 128 in one transaction that compares their indexes, and read if they have
// changed. Each has its turn about once a second, in up to four transactions a second. So changes
// of up to 16 keys are seen at once; of 500, within a second or so; of 10,000, within 25. A refresh is a look at its key too, so the key of a leader
// has no turn if it is refreshed more often than that. What is read is read by itself, up to 50
// times a second, and 64 keys in one transaction beyond that.
// An election has one key, and up to three where there is a
// succession. For a faster handover in a process with many elections use several
// clients, and see that the agent takes their connections.
//
// When a request is refused, or waits for one of the client's own connections because
// its transport has a bound (MaxConnsPerHost), all blocking queries of the client end
// to make room; they come back one by one, every 2 s. For 5 s there are 4 requests at
// a time, which the connections carry that the transport has kept open (GOMAXPROCS + 1
// by default, MaxIdleConnsPerHost), and 4 reads a second for watches. A request that was
// refused had no effect: it is made again for about half a second. So leaders keep their
// terms while another process takes all other connections of the address, as long as the
// agent answers what they need over those few. The error, which the engine logs, begins with
// "rate limited".
package consulkv
