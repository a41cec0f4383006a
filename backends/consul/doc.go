// Package consulkv keeps safes in Consul's key/value store, as api.Lock and "consul lock"
// lay out theirs, so old locks and candidates can share a key. Choose it where the
// service has a Consul already. It needs no care for clocks, and survives the loss of a
// server, but Consul is slow to expire: see [NewObserved] for a shorter failover.
//
//	client, err := api.NewClient(api.DefaultConfig())
//	if err != nil {
//		return err
//	}
//	store := consulkv.New(client, &consulkv.Options{Prefix: "elections/"})
//	candidate, err := election.New(store, "billing", nil)
//	if err != nil {
//		return err
//	}
//	return candidate.Run(ctx, bill) // func(context.Context, *election.Term) error
//
// # Guarantees
//
// At most one live record per safe, through crashes, restarts and partitions of Consul's
// servers, as long as a majority keeps its data. Every change is one transaction through
// Raft, and for every read Consul's leader makes sure that it still leads. Sessions are
// measured with the servers' monotonic clocks.
//
// A dead owner's safe opens late. Consul ends a session after twice its TTL, and grants
// no TTL below 10 s, so others wait for 20 s at best ([Store.Lifetime] returns the time). A new
// leader of the servers starts all sessions anew, which adds to that. A safe that is
// given up is open at once.
//
// A record that is refreshed within its TTL lasts. A refresh after twice the TTL may
// report success just before its session ends. If Consul fails to commit that end, it
// tries again for 310 s, even if the session was renewed meanwhile (invalidateSession in
// the code of Consul 1.14.5): a leading server that was frozen for twice the TTL, and
// leads again within that time, may end the sessions of live owners.
//
// Locks in Consul are advisory. A program that writes to a key in another way takes the
// key from its owner. The owner learns that from its watch, or at its next refresh.
//
// A session belongs to the node of the agent that the client talks to, and ends
// when that node leaves the catalog: by "consul leave" or "force-leave", or
// three days after it failed. A restart of the agent does no harm. Talk to an
// agent that stays as long as the candidates do, on their own host or a server.
//
// With checks (see [Options]) a failing check ends the session before its TTL has passed.
// Then the safe is reported as vacant early; the lock-delay, which is at least the TTL,
// keeps everybody out until the TTL has passed. The servers keep lock-delays in memory: a
// server that restarts and then leads has forgotten them. Without checks, nothing depends
// on a lock-delay.
//
// Consul does not announce that a snapshot was restored, and a watch may notice it
// only when it next looks by itself (see Cost). A watch whose server has lost its leader
// without a sign learns of a vacancy when its query ends. That may take the query's wait
// and some seconds more: 17 s were seen at a TTL of 1 s.
//
// Tokens go back if their index does. A snapshot that is restored into a new cluster has
// the index at which it was taken, and the new cluster does not know the tokens drawn
// since. Before candidates start on such a cluster, seed a larger token (see Records), or
// give the resources that compare tokens new fences.
//
// Expiry judged by observers: [NewObserved] makes a store whose keys no session holds.
// Each refresh is a write that gives the key another ModifyIndex, and a candidate that
// has seen one ModifyIndex for the record's TTL, by its own clock, may put its record
// there, on condition that the key still has that ModifyIndex. Package internal/observer
// says why two never lead.
//
// Choose it for a short failover: TTLs go down to 500 ms, and the next leader follows a
// dead one after its TTL, while a session keeps others out for 20 s at best. No session
// is left over, no lock-delay or check matters, and a node that leaves the catalog ends
// no term. For long TTLs it hardly pays: each of the leader's three refreshes per TTL is
// a write to the Raft log, and ends the blocking queries of all candidates that wait, and
// the leader's own. A candidate that has just begun to watch has to see a dead record for
// a whole TTL, however old the record is. A dead owner's record stays until the next
// candidate comes, or an operator removes it.
//
// A key has the text form of the record, which says that observers judge
// ("observed":true), and flags of its own, 0x6f62736572766564. Each text has the index of
// the text that it replaced, since Consul ignores a write that changes nothing. The key
// goes when its owner gives it up. The token is the ModifyIndex of the write that brought
// the signature in. An operator who deletes the key frees the safe at once, although its
// owner trusts its record until its watch or its next refresh tells of that. A plain
// write over an observed record leaves a foreign key, as it does over any record.
//
// To candidates of a [Store], an observed record is another program's lock, which nothing
// ends, although no session holds its key. To candidates of an [Observed], the records of
// a Store are the same, and so is a key that these leave open, since a lock-delay may be
// running for an owner that still trusts its record. Never mix the two in one election:
// they keep each other out, but one kind waits for ever once an owner of the other kind
// has died or resigned. Values cannot be plain. To change from one to the other, stop all
// candidates first, and delete the key.
//
// An observed safe must not share its key with the locks of other programs. An api.Lock
// refuses it for its flags (ErrLockConflict), and so does "consul lock". But to Consul a
// key without a session is free. A program that acquires a key without looking at its
// flags, as a script with ?acquire= does, takes it from a live leader; the leader learns
// that from its watch, or at its next refresh. The key of such a lock stays, and keeps
// observers out until somebody deletes it.
//
// There is no Guard: a transaction of Consul can compare a key's session, and here there
// is none, or its ModifyIndex, which each refresh changes. Have resources check the
// token.
//
// # Records
//
// A safe is the key with the prefix and the name, as api.Lock and "consul lock" use it
// ("consul lock" at ".lock" under the prefix that it is given). A session locks the key,
// with the lock flags 0x2ddccbc058a50c18. Its value is the text form of package kv. It is
// vacant if there is no such key, or if it has the lock flags and no session. Owners
// leave the key in place, as those programs do, with an empty value; vacant keys may be
// deleted at any time.
//
// api.Lock and this package exclude each other on one key. A locked key with another
// value is reported as foreign, and so is any key with other flags, locked or not:
// semaphores, the locks of Patroni and litefs, plain data. A plain write over a record,
// by "consul kv put" or in the web interface, clears the flags. The key is foreign then,
// and stays until somebody deletes it.
//
// A foreign session may have a lock-delay, 15 s by default. While that runs, the safe is
// vacant, and a create returns an ErrHeld whose text says so. No watch tells when it
// ends.
//
// The token is the ModifyIndex of the write that brought the signature in, an index of
// the Raft log. It grows even if keys are deleted, and if snapshots are restored into the
// same cluster. The LockIndex does not.
//
// If the safe's last token is larger than the index of its key, the next token is the
// next number instead, until the index is larger again. So an election can continue from
// the tokens of another store, or of another cluster. Write the last token to the key
// while there is no key, with the flags of locks:
//
//	consul kv put -cas -modify-index=0 -flags=3304740253564472344 KEY '{"election":1,"token":LAST}'
//
// A record has such a token in its text, and leaves it at the key when it is deleted. The
// token is lost if an operator deletes the key (with plain values, its companion too), if
// an api.Lock has held the key meanwhile, if a leader with plain values died and one
// without follows, or if a key whose text names no token is copied to another cluster.
// Observed records have no such token.
//
// A record's TTL is its session's, to the millisecond. Some sessions are made for one
// record, and left to expire when that is deleted. Others back up to 500 records of one
// Store (kv.Record.Shared): those of leaders, which the engine creates. A shared session
// has the name "elections of one process", locks each key for one term only, and is never
// destroyed by this package. A create whose answer was lost, or an owner that has given
// up, may leave a key behind under it. The Store looks for such keys when it refreshes
// other records, and releases them once nobody has asked to refresh them for two TTLs, as
// Consul would have done. If the client has lost its rights to such a key, the session
// takes no more records after a TTL; after 60 TTLs the other terms of the session end,
// and it expires. If somebody destroys a shared session, up to 500 terms end.
//
// After a hand-over the heir's session backs two records. Consul does not tell what a
// session holds, and earlier versions of this package destroy the session of a record
// that has no mark. So the hand-over marks both records, by a revision in their texts. It
// rewrites the heir's own key for that, which changes nothing in the heir's record. The
// heir's own record must have been created by this package in this datacenter: the
// session's name tells where that record is.
//
// A name is refused if its key would not arrive unchanged: if the key is longer than 4
// KiB, has a slash at the front, "//", "." or ".." between slashes, or anything but
// printable UTF-8. It is also refused if it ends in ".election", as the companions of
// plain values do. A text may have 320 KiB, which limits a value and its note together to
// about 300 KiB, or 240 KiB if the value is no UTF-8 and not plain; in a hand-over both
// texts together must fit.
//
// With [Options].Plain a safe has two keys, for programs that read the value where the
// holder of an api.Lock has put it. The key has the value and nothing else. Its
// companion, the key with ".election" at the end, has the record without the value. As
// with api.Lock, a value is a leader's only while a session holds the key: a session that
// expires leaves the value there.
//
// Each transaction of this package writes both keys, and one session holds both. So a
// companion proves that the key is a record of this library by having the same session
// and the same ModifyIndex: one transaction wrote both, and nobody has written or deleted
// either since. Any other key that is locked, by an api.Lock say, is foreign. The key
// alone tells whether somebody holds the safe.
//
// An owner whose companion is written over or deleted finds its record lost at the next
// refresh. Watches wait for changes of the key, so they see it when they next look, or
// when the session has ended.
//
// The next record replaces what an old record has left at the companion of a vacant key.
// Any other text there is another program's, locked or not, and is not touched. The safe
// is reported as foreign until that text is gone, which a watch sees when it next looks.
//
// The record of a member of a roster ([kv.Roster]) is at the key with the prefix, the name,
// ":roster:" and the member's own key. Its value is never plain. A member that leaves deletes its
// key. That of one that died stays, vacant, until another member enters ([Store.Members]).
//
// # Requirements
//
// Consul 1.14, which is tested, or later. Namespaces and partitions of Consul
// Enterprise have not been tried.
//
// An ACL token needs key:read and key:write for the keys, for their companions if values
// are plain, and, unless observers judge, session:write for the agent's node. It needs
// key:read and key:write for more keys where there is a succession or requests are accepted
// (those with ":heir" and ":request" at the end), and with a hold, Options.Hold
// (":hold"), and with a roster (":roster:" and more), where key:read for the name and ":roster:" as
// a prefix is needed to list it: Consul leaves out what a token may not read. A hand-over writes the heir's own keys too.
//
// TLS and authentication are those of the api.Client. Its http.Client must have
// no Timeout below 75 s, or watches end with it.
//
// # Cost
//
//   - Create: a read, a session, a transaction; if the safe is held, a read. After a
//     Delete of the same name and TTL, its session is there, and is renewed beside the
//     read. If records share a session it is a read, a renewal, a transaction.
//   - Refresh: a consistent read, which costs the servers a round of heartbeats
//     and no write to disk, and a renewal, which the leader keeps in memory.
//   - RefreshAll: a transaction that only reads for 128 records (64 with plain values), and a
//     renewal for each of their sessions: one for 500 records that share it, and one for each that
//     was handed over, follows another term of the process, or is an heir's.
//   - Publish: a read and a transaction. Delete: the same and, beside it, a session for
//     the next Create.
//   - Members: one read of all keys of the roster. AwaitMembers: a blocking query. A Create of a
//     member reads about a thirty-second part of the roster as well, and may delete keys that
//     dead members have left, by a transaction for 64. With plain values, members share a session
//     of their own.
//   - Hand-over: two reads, a renewal, a transaction; in one step ([Store.HandOver]) a
//     read and a transaction.
//   - A session whose record is gone, or that no Create has used, is left to expire: idle
//     for up to twice its TTL.
//   - Watch: one blocking query at a time. An unchanged safe costs one request each
//     minute ([Options].Backstop), or each two TTLs of a live record if that is less, but
//     at least 10 s. A refresh wakes no watch. At a key that is written all the time, a
//     watch sends four requests per second. Plain values cost one more read each time it
//     looks. The watches of one key over one client share the query; if there are more
//     than 16 keys, the others are looked at in turns: see below.
//
// With [NewObserved], each operation is one request, a refused Create two; Create, Swap,
// Refresh and Delete are one write. A watch sends one request for each refresh that it sees, and
// no more than four per second for any length of time. With the shortest TTL, 500 ms, a leader sent 51 requests
// in 4 s, half of them for its own watch, and a waiting candidate 24:
//
//	go test ./backends/consul -v -run 'CostsAFew|ObservedOperationCosts|AWaitingObserver'
//
// Connections: over HTTP/1.1 each request that is under way holds a connection. By
// default an agent takes 200 connections from one address, from all processes there
// (limits.http_max_conns_per_client), and answers 429 to the others. All stores of one
// api.Client therefore share these bounds: 16 blocking queries, 4 reads for other
// watches, 32 requests of any other kind. The rest wait, in the order in which they came.
//
// The watches of one key share a blocking query. Keys that find no room for one are
// looked at in turns: one transaction compares the indexes of 128 keys, and those that
// have changed are read. Each key has its turn about once a second, in up to four
// transactions per second. So changes of up to 16 keys are seen at once; of 500, within a
// second or so; of 10,000, within 25. A refresh looks at its key too, so a leader's key
// has no turn if it is refreshed more often than that. Up to 50 keys per second are read
// one by one; beyond that, 64 keys are read in one transaction. An election has one key,
// and up to three where there is a succession. For a faster hand-over in a process with
// many elections, use several clients, and make sure that the agent takes their
// connections.
//
// When a request is refused, or waits for one of the client's own connections because its
// transport has a bound (MaxConnsPerHost), all blocking queries of the client end to make
// room; they come back one by one, every 2 s. For 5 s there are 4 requests at a time,
// over the connections that the transport has kept open (GOMAXPROCS + 1 by default,
// MaxIdleConnsPerHost), and 4 reads per second for watches. A request that was refused
// had no effect: it is sent again for about half a second. So leaders keep their terms
// while another process takes all other connections of the address, as long as the agent
// answers their requests over those few. The error, which the engine logs, begins with
// "rate limited".
package consulkv
