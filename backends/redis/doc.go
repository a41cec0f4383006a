// Package rediskv keeps safes in Redis. A record is a string at a key, as SET NX PX makes
// it, so old locks and candidates can share a key. Choose it where the service has a
// Redis already, and read below what a failover, a restart or a jump of its clock breaks.
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
//	defer client.Close()
//	store := rediskv.New(client, nil)
//	candidate, err := election.New(store, "billing", nil)
//	if err != nil {
//		return err
//	}
//	return candidate.Run(ctx, func(ctx context.Context, term *election.Term) error {
//		return bill(ctx, term.Token()) // return soon after ctx has ended
//	})
//
// # Guarantees
//
// At most one live record per safe, on a single server that keeps what it has
// acknowledged, as long as its wall clock does not jump. Clients may crash,
// pause, lose messages and be cut off. Reads are of the primary.
//
// What breaks it, so that a second owner may come while the first still trusts
// its lease:
//
//   - The server's wall clock jumps forward: Redis judges expiry by it, and a
//     jump of 120 s ends a TTL of 60 s at once. A jump backward keeps a dead
//     owner's record alive for as long.
//   - A failover, with Sentinel or Cluster: replication is asynchronous, and the new
//     primary may not know the record. Until the old primary has heard of the new one, or
//     for up to the cluster's node timeout if it is cut off, there are two. WAIT and
//     min-replicas-to-write make that less likely, not impossible.
//   - A restart without an append-only file that is synced on each write
//     (appendonly yes, appendfsync always) forgets what was not yet on disk.
//   - Eviction: with any maxmemory-policy other than noeviction the server may drop
//     records when memory is short.
//   - Other programs that delete or overwrite keys that are not theirs, and FLUSHALL. The
//     owner finds out at its next refresh. Cost says when a watch does.
//
// [Options.Quarantine] closes the third hole, and the second as far as a failover goes:
// the safes stay closed for a while on a server that was restarted or promoted. The
// server's clock measures that time, so the first hole stays, and a clock that jumps
// ahead ends a quarantine too. One case of the second hole remains: an old primary that
// is cut off together with its leader and goes on for as long as min-replicas-max-lag
// lets it, or for ever.
//
// Against all of these, give the token to what the leader writes to, and have it refuse a
// smaller one; for data on the same server, [Store.Eval] asks the safe itself. A token is
// the larger of a counter and the server's clock in microseconds. Tokens grow across
// deletes, expiries and FLUSHALL, and across a failover or restart that loses the
// counter, unless the clock has gone back at the same time. Locks of other programs do
// not move the counter.
//
// Outcomes are definite or unknown. Each write is sent to the server once: the client's
// own retries, which hide a lost reply behind the answer to a second attempt, are off for
// the scripts that this package sends. [kv.ErrStale] thus means that nothing was done.
// Every other refusal of a server (READONLY, MOVED, CLUSTERDOWN, LOADING, MASTERDOWN,
// NOAUTH, NOPERM, OOM, BUSY …) is an error that matches none of package kv's.
//
// Expiry judged by observers: [NewObserved] makes a store whose keys have no expiry, so
// no clock of a server ends a record. Each refresh is a write that gives the record a new
// revision, and a candidate that has seen one revision for the record's TTL, by its own
// clock, may put its record there, on the condition that the revision is still the same.
// That closes the first hole above: a jump of the server's wall clock changes nothing, in
// either direction. The second owner comes after the first has stopped trusting its
// lease, as long as the rates of the hosts' clocks differ by no more than a thousandth or
// so. Choose it where somebody may set the server's clock, or where a virtual machine's
// clock jumps when it is woken or moved.
//
// It has a cost: each refresh is a SET, which goes to the replicas and to the append-only
// file, and after which each waiting candidate looks. A record that its owner left behind
// stays until somebody takes the safe, or removes the record. A candidate that has just
// begun to watch has to see the record for a whole TTL, however old the record is. The
// shortest TTL is 500 ms.
//
// The other holes are as they were. A server that has forgotten that a record was
// refreshed shows an old revision, which a candidate may have watched before. That is the
// same as a lost record. [ObservedOptions.Quarantine] closes the safes here too, also to
// a candidate that would replace a record, and to hand-overs. The candidates measure it,
// each by its own clock since it first saw the server's identity, so a clock that is set
// after a restart does not cut it short. The first candidate that has waited that long
// writes that down, and the safes are open to all. Only a policy that begins with allkeys
// evicts records.
//
// When memory is short, a leader's refreshes succeed, since they take no more memory than
// is in use. New values that are longer, and new records, are refused.
//
// The text at the key says that observers judge ("observed":true). To candidates of a
// [Store] it is a foreign record that never expires, and they wait. To candidates of an
// [Observed], the records of a Store are foreign too, even one whose expiry somebody has
// removed. All candidates of an election need the same kind of store. Values cannot be
// plain: other programs would not see that the record has to be refreshed.
//
// The token is the larger of the counter and the server's clock, as above. The revision
// is a random number of 63 bits that comes with the request. So a revision is never used
// twice, even if a counter is lost or a clock goes back. By the revision the server
// recognises a request that the network delivers twice, and answers it as the first time.
//
// # Records
//
// The key is the prefix and the name, unchanged. The value is the text of [kv.Encode],
// with token and revision; the key's expiry is the TTL, in milliseconds, rounded up.
// [kv.Record] has no Lease: records keep themselves alive.
//
// So a key that another program holds by SET NX (go-redis's SetNX, redsync, redislock,
// ShedLock …) is a foreign record and excludes candidates, and a record excludes those
// programs. A key of another type than string is a foreign record too. Foreign records
// have a hash of their content for a revision. A key that has no expiry is Permanent. If
// it is foreign (SETNX, and a crash before EXPIRE), it stays until somebody removes it.
// If it is ours, somebody has removed its expiry, and the next refresh restores that.
//
// The counter of tokens and revisions is at a second key, which has no expiry:
//
//	jobs         {jobs}:election-fence
//	{team}jobs   {team}jobs::election-fence
//
// With a quarantine, {jobs}:election-server has the server's identity and since when it
// is known, and with plain values {jobs}:election-record has the text. In a cluster all
// keys of a safe are in one slot. Names that end in one of the three endings, and names
// in which a } closes no hash tag ("a}b", "{}"), are refused with [kv.ErrInvalid]. This
// package does not touch a counter that holds no number: creates and swaps fail with an
// error that names the key.
//
// The records of members of a roster ([kv.Roster]) are at keys of their own, with one counter and
// one sorted set of the members' keys for all, in the slot of the election:
//
//	{jobs}:election-roster           the set
//	{jobs}:election-roster:KEY       a member's record, never with a plain value
//	{jobs}:election-roster:election-fence
//
// A member that died stays in the set until another one that enters finds it: each looks at
// four that are drawn from the set. Members lists what the set names, so it does not see a key
// that another program has put where no member was. Names with ":election-roster" in them are
// refused.
//
// Every name under which a record was ever created leaves a counter behind: about 100
// bytes and the name. If there are many short-lived names, delete the counters of names
// that were out of use for longer than any TTL: tokens continue from the clock.
//
// Where values are plain ([Options].Plain), the record's key has the value and nothing
// else, any bytes, for programs that read it there. The text, without the value, is at
// the key {jobs}:election-record, and after it a line break and the value once more. One
// script writes both, and gives both the same expiry, to the millisecond.
//
// A key is ours if, and only if, the other key repeats its value and expires in the same
// millisecond (or neither expires). Everything else is foreign: another program's lock
// with the very same value, after a bare DEL; a record that another program has extended,
// or that has lost its expiry (it is Permanent then); a record whose other key was
// evicted, overwritten, or given another expiry. The owner finds its record lost at the
// next refresh, and the others wait until the key is gone. One case cannot be told apart:
// another program's lock with the same value whose expiry is in the same millisecond by
// chance.
//
// The other key alone means nothing. A create replaces it if it has a text of this
// package with a line break after it: an earlier record has left that. Anything else
// there belongs to another program and is not touched. Then a create is refused, with a
// [kv.ErrHeld] that names the key, until somebody removes it. All other operations that
// write the other key, delete it or extend it do so to both keys at once, and only if
// they are the caller's record.
//
// Redis 6.2 does not say when a key expires, only how long it will live. There, two
// expiries count as the same if they differ by no more than the time between two commands
// of a script, which is usually a millisecond.
//
// All candidates of an election need the same setting. To a candidate with the other
// setting a record is foreign, and it waits. A value that is itself a record's text looks
// like that record to candidates whose values are not plain; they wait as well.
//
// Publish no value that another program takes for its own, such as the name of its host.
// It may then release or extend the record as if that were its lock; if it extends it, it
// believes that it holds the lock.
//
// Old locks: programs that lock a key by SET NX and candidates of the same name exclude
// each other, as long as they use one server. For go-redis's SetNX, redsync and
// redislock, the key is the name, unchanged. Others need a prefix:
//
//	rueidislock   Prefix "rueidislock:0:", and there KeyMajority 1
//	ShedLock      Prefix "job-lock:default:", or its environment for default
//
// A lock on several servers or keys (redsync with several pools, rueidislock with a
// larger majority) cannot be shared: one of its keys is not the lock.
//
// What such programs do with a record:
//
//   - They check whether the key exists, and wait while it does, whatever its value.
//   - Those that compare before they extend or release (redsync, redislock, rueidislock)
//     leave it alone. A redislock with a Token of its own compares only the beginning of
//     the value, so a plain value must not begin with that token.
//   - Those that do not compare (a bare DEL, ShedLock without safeUpdate) delete or
//     overwrite a record, as they do each other's locks. The owner has lost it, and does
//     not bring it back: another candidate may have led in between.
//   - kvtools/redis with its JSONCodec spins at a value that is not in its JSON. With
//     plain values, publish such JSON.
//
// What candidates do with a lock: they wait until it is gone. They never extend,
// overwrite or delete it. A lock that has no expiry, since its program crashed between
// SETNX and EXPIRE, is Permanent and never stolen: somebody has to delete it. There are
// also locks whose holder does not know that it has them, until they expire: by default
// go-redis sends SETNX again after a lost reply, and reports that it has failed (go-redis
// issue 2985).
//
// # Requirements
//
// Redis 6.2 or later (for GETEX and SET PXAT; SET KEEPTTL and TIME before a write are
// older). For plain values PEXPIRETIME of 7.0 is used if it is there. Tested with 7.0,
// alone and as a cluster. Use Sentinel and Cluster through the clients that go-redis has
// for them. A redis.Ring is refused: it moves keys to another server when one does not
// answer. [Store.Diagnose] looks at the server's settings.
//
// An ACL has to allow:
//
//   - on all the keys: EVAL, EVALSHA, TYPE, EXISTS, GET, GETEX, SET, DEL, PTTL,
//     PEXPIREAT (not where observers judge); and TIME; with a quarantine also INFO, and with plain values
//     PEXPIRETIME; where there is a succession, or requests are accepted, on the keys
//     of the names with ":heir" and ":request" at the end too,
//     and with a hold (Options.Hold) of those with ":hold";
//   - with a roster on those keys also ZADD, ZREM, ZRANGEBYLEX and ZRANDMEMBER;
//   - PING, which the client sends on its subscriptions;
//   - on the channels "election:" + key: PUBLISH, SUBSCRIBE and UNSUBSCRIBE. Without
//     these permissions all works, but watches learn of a release only at their next
//     read. The messages contain the records: a user that may subscribe may read them;
//   - on the channels "__keyspace@<db>__:" + key: SUBSCRIBE and UNSUBSCRIBE. If the
//     server refuses, the store does not ask again until all its watches have ended.
//
// Get and Watch read by GETEX. A server that may not write refuses that: a replica, a
// primary without the replicas that min-replicas-to-write demands, a server that cannot
// save. Its data may be out of date. The scripts are not read-only commands, so that a
// cluster client with ReadOnly, RouteByLatency or RouteRandomly sends them to the
// primary too.
//
// HandOver and Vacate need the keys of two safes. In a cluster they are in one slot if
// both names have the same hash tag, as "{jobs}" and "{jobs}:heir" do. If not, they
// return an error that matches [errors.ErrUnsupported]; a hand-over then takes a Get and
// a Swap, and a release a Get and a Delete. A release does so too while the slot
// migrates.
//
// While a slot of a cluster migrates, creates, swaps and hand-overs fail with TRYAGAIN,
// since they need several keys at one node; refreshes, deletes and reads follow the
// record. With a quarantine, reads need two keys as well. With plain values every
// operation does: while the record and its text are at two nodes, the leader cannot
// refresh, and nobody can tell that the safe is vacant until the slot has moved. And
// MIGRATE keeps the time that a key has left, not its expiry. Two keys that it moved one
// after the other often expire a millisecond apart: then the record is foreign until it
// is gone, and the leader has lost it. If one MIGRATE moves both, as redis-cli does in
// slots with few keys, they usually stay together. When a node of a cluster does not
// answer, the store makes the client look up the owners of the slots; by itself the
// client would do so only once a minute.
//
// Set ContextTimeoutEnabled in the client's options. Every call returns when its
// context ends, but go-redis itself does not heed a cancellation while it waits
// for a reply, and a deadline only with that option: without it, and after a
// cancellation, one goroutine and one connection of the client's pool stay with
// the abandoned request until the server answers or the client's ReadTimeout
// (5 s by default) has passed.
//
// Where the server is far away, set DisableIdentity too: go-redis closes a connection
// whose answer came too late, and a new one then takes one round trip less. A refresh has
// three tenths of the TTL: choose a TTL with which that is four round trips or more.
//
// # Cost
//
// Each operation is one EVALSHA, including HandOver. A leader sends its refreshes.
//
// RefreshAll takes one EVALSHA for each 128 records, with up to four of them at once. The
// script compares the whole text of each record, and sets the expiry if the text is the
// one expected. Each record that it does not confirm is then refreshed by an EVALSHA of
// its own, with up to eight at once: one that was lost, or published anew meanwhile. So
// are, from the beginning, records with a text of more than 1 KiB, those with plain
// values, and all records in a cluster, with up to eight at once for each node. To
// refresh 10,000 records with texts of about 200 bytes took the server 36 ms of its
// processor; one by one, it took 650 ms.
//
// A watch reads the safe (one EVALSHA) at its beginning, when its subscription stands,
// after each hint, when the record's expiry is due (within 21 ms after it), and at
// intervals of at most Options.Backstop (1 s, less up to a quarter). So a leader learns
// within about a second that its record was deleted or overwritten. All watches of a Store
// together make up to a hundred reads per second without a hint: with more than a hundred
// safes the intervals are longer, and twenty times as long at vacant ones. All watches of
// a safe by one Store share these reads, about one per second, however many candidates
// wait. With thousands of processes, or with keyspace events, a longer Backstop will do.
// Processes that wait for the same expiry read at moments spread over 20 ms. Hints make
// no watch read more often than every 10 ms.
//
// Hints come from the scripts, which publish each change, at once, with the record that
// they have written and the revision before it. A watch that has shown that revision
// shows the record at once, and then reads the safe, which corrects a message that is
// lost, late or false. Hints also come from keyspace events where the server's
// notify-keyspace-events has them ("Kg$xe" will do): these tell what other programs do.
// Neither is needed, and this package never changes the setting. Without events, another
// program's DEL or SET is seen at the next read, by the intervals above; expiry never
// depends on events, which were seen 39 s late. In a cluster, a node tells only of its
// own keys, so events are heard for some keys only.
//
// All watches of a Store share one connection for their subscriptions, pinged
// every 5 s, outside the client's pool; it lasts as long as anybody watches.
//
// A hand-over to an heir is one EVALSHA of the leader and one read by each process that
// watches the leader's safe. Without an heir it is one EVALSHA, a read by each process
// that waits, and the creates of the candidates that claim the safe.
//
// Where observers judge, a watch reads the safe after each refresh too, and after half the
// record's TTL if nothing hints at one: with a TTL of 15 s, that is once in five seconds
// beside the reads of the Backstop. It reads once more before it takes a record for dead.
// Where keyspace events are on, each refresh is a hint twice.
package rediskv
