// Package rediskv keeps safes in Redis, beside the locks that are there already:
// a record is a string at a key, as SET NX PX makes it, so that old locks and
// candidates can share one.
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
//   - A failover, with Sentinel or Cluster: replication is asynchronous, and the
//     new primary may not know the record. And until the old one has heard of it,
//     or for up to the cluster's node timeout if it is cut off, there are two.
//     WAIT and min-replicas-to-write make that less likely, not impossible.
//   - A restart without an append-only file that is synced on each write
//     (appendonly yes, appendfsync always) forgets what was not yet on disk.
//   - Eviction: with any maxmemory-policy but noeviction the server may drop
//     records when memory is short.
//   - Other programs that delete or overwrite keys which are not theirs, and
//     FLUSHALL. The owner finds out at its next refresh; a watch as told under
//     Cost.
//
// [Options.Quarantine] closes the third hole, and the second as far as a failover
// goes: the safes stay closed for a while on a server that was restarted or
// promoted. The time is the server's own, so the first hole stays, and a clock
// that jumps ahead ends a quarantine too. What remains of the second is an old
// primary that is cut off together with its leader and goes on for as long as
// min-replicas-max-lag lets it, or for ever.
//
// Against all of these, give the token to what the leader writes to, and have
// it refuse a smaller one; for data on the same server, [Store.Eval] asks the safe
// itself. Tokens are the larger of a counter and the server's
// clock in microseconds: they grow across deletes, expiries and FLUSHALL, and
// across a failover or restart that loses the counter, unless the clock has gone
// back at the same time. Locks of other programs do not move the counter.
//
// Outcomes are definite or unknown. Each write is sent to the server once: the
// client's own retries, which hide a lost reply behind the answer to a second
// attempt, are off for the scripts that this package sends. [kv.ErrStale] thus
// means that nothing was done. Everything else that a server can answer
// (READONLY, MOVED, CLUSTERDOWN, LOADING, MASTERDOWN, NOAUTH, NOPERM, OOM, BUSY
// …) is an error that is none of kv's.
//
// Expiry judged by observers: [NewObserved] makes a store whose records no clock of
// a server's ends, since no key has an expiry. Each refresh is a write that gives
// the record a new revision, and a candidate that has seen one revision for the
// record's TTL, by its own clock, may put its record there, on the condition that
// the revision is still the same. So
// the first hole above is closed: a jump of the server's wall clock changes nothing,
// in either direction. The second owner comes after the first has stopped trusting
// its lease, as long as the hosts' clocks go at the same rate, but for a thousandth
// or so. Choose it where somebody may set the server's clock, a virtual machine's
// that is woken or moved among them.
//
// What it costs: each refresh is a SET, which goes to the replicas and to the
// append-only file, and each waiting candidate looks after it. A record that its
// owner left behind stays until somebody takes the safe, or removes it. A candidate
// that has just begun to watch has to see the record for a whole TTL, however old it
// is. The shortest TTL is 500 ms.
//
// The other holes are as they were. A server that has forgotten that a record was
// refreshed shows an old revision, which a candidate may have watched before; it is
// the same as if the record was lost. [ObservedOptions.Quarantine] closes the safes
// here too, also to those who would replace a record, hand-overs among them; it is
// measured by the candidates, each by its own clock since it first saw the server's
// identity, so that a clock which is set after a restart does not cut it short. The
// first who has waited for so long writes that down, and the safes are open to all.
// Eviction touches records only by a policy that begins with allkeys.
//
// Where memory is short, a leader's refreshes go on, since they take no more than
// there is in use; new values that are longer, and new records, are refused.
//
// The text at the key says that observers judge ("observed":true). To candidates of
// a [Store] it is a foreign record that never expires, and they wait; and so are
// their records to those of an [Observed], even if somebody has stripped one of its
// expiry. All candidates of an election need the same. Values cannot be plain:
// other programs would not see that the record has to be refreshed.
//
// The token is the larger of the counter and the server's clock, as told above. The
// revision is a random number of 63 bits that comes with the request: no counter
// that is lost, and no clock that goes back, makes a revision come again. A request
// that the network delivers twice is known by it, and answered as the first time.
//
// # Records
//
// The key is prefix and name, verbatim. The value is the text of [kv.Encode],
// with token and revision; the key's expiry is the TTL, in milliseconds, rounded
// up. [kv.Record] has no Lease: records keep themselves alive.
//
// So a key that another program holds by SET NX (go-redis's SetNX, redsync,
// redislock, ShedLock …) is a foreign record and excludes candidates, and a
// record excludes those programs. A key of another type than string is a foreign
// record too. Foreign records have a hash of their content for a revision. A key
// that has no expiry is Permanent: if it is foreign (SETNX, and a crash before
// EXPIRE) it stays until somebody removes it; if it is ours, since somebody
// stripped it, the next refresh restores the expiry.
//
// The counter of tokens and revisions is at a second key, which has no expiry:
//
//	jobs         {jobs}:election-fence
//	{team}jobs   {team}jobs::election-fence
//
// With a quarantine, {jobs}:election-server has the server's identity and since
// when it is known, and with plain values {jobs}:election-record has the text. In
// a cluster all keys of a safe are in one slot. Names that end in one of the three
// endings, and names in which a } closes no hash tag ("a}b", "{}"), are refused
// with [kv.ErrInvalid]. A counter
// that holds no number is left alone, and makes creates and swaps fail with an
// error that names the key.
//
// Every name that a record was ever created under leaves a counter behind, about
// 100 bytes and the name. If there are many short-lived names, delete the
// counters of names that are out of use for longer than any TTL: tokens go on
// from the clock.
//
// Where values are plain ([Options].Plain), the record's key has the value and
// nothing else, any bytes, for programs that read it there. The text, without the
// value, is at the key {jobs}:election-record, and after it a line break and the
// value once more. One script writes both, and has both expire in the same
// millisecond.
//
// A key is ours if, and only if, the other one repeats its value and expires in
// the same millisecond (or both never do). Everything else is foreign: another
// program's lock with the very same value, after somebody's bare DEL; a record
// that another program has extended, or that has lost its expiry (it is Permanent
// then); one whose other key was evicted, overwritten, or given another expiry.
// The owner finds its record lost at the next refresh, and the others wait until
// the key is gone. What this cannot tell is another program's lock with the same
// value whose expiry falls into the same millisecond by chance.
//
// The other key alone means nothing. A create replaces it if it has a text of this
// package, a line break behind it: an earlier record has left it. Anything else
// there is another program's and left alone, and a create is refused: [kv.ErrHeld],
// in an error that names the key, until somebody removes it. All else that writes
// to the other key, deletes it or has it live longer does so to both keys at once,
// and only if they are the caller's record.
//
// Redis 6.2 does not say when a key expires, only how long that takes. There, two
// expiries count as the same that differ by no more than the time between two
// commands of a script, a millisecond as a rule.
//
// All candidates of an election need the same setting. To one with the other
// setting a record is foreign: it waits. Only a value that is itself a record's
// text looks like that record to candidates whose values are not plain; they wait
// just so.
//
// Publish nothing that another program takes for its own value, as it would its
// host's name. It may then release or extend the record as if it were its lock,
// and in the latter case believes that it holds it.
//
// Old locks: programs that lock a key by SET NX and candidates of the same name
// exclude each other, as long as they use one server. The key is the name,
// verbatim, for go-redis's SetNX, redsync and redislock. Others need a prefix:
//
//	rueidislock   Prefix "rueidislock:0:", and there KeyMajority 1
//	ShedLock      Prefix "job-lock:default:", or its environment for default
//
// A lock on several servers or keys (redsync with several pools, rueidislock with
// a larger majority) is not to be shared: one of its keys is not the lock.
//
// What such programs do with a record:
//
//   - They look whether the key is there, and wait. Whatever is there counts.
//   - Those that compare before they extend or release (redsync, redislock,
//     rueidislock) leave it alone. A redislock with a Token of its own compares no
//     more than the beginning of the value: a plain value must not begin with that
//     token.
//   - Those that do not compare (a bare DEL, ShedLock without safeUpdate) delete or
//     overwrite a record, as they do each other's locks. The owner has lost it, and
//     does not bring it back: somebody else may have been there in between.
//   - kvtools/redis with its JSONCodec spins at a value that is not of its JSON.
//     With plain values, publish that.
//
// What candidates do with a lock: they wait until it is gone. They never extend,
// overwrite or delete it. One that has no expiry, since its program crashed
// between SETNX and EXPIRE, is Permanent and never stolen: somebody has to delete
// it. And there are locks that nobody knows to hold, until they expire: by default
// go-redis sends SETNX again after a lost reply, and reports that it has failed
// (go-redis issue 2985).
//
// # Requirements
//
// Redis 6.2 or later (GETEX, SET PXAT; SET KEEPTTL and TIME before a write are
// older). PEXPIRETIME, of 7.0, is used for plain values if it is there.
// Tested with 7.0, alone and as a cluster. Sentinel and Cluster through the
// clients that go-redis has for them. A redis.Ring is refused: it moves keys to
// another server when one does not answer. [Store.Diagnose] looks at the
// server's settings.
//
// An ACL has to allow:
//
//   - on all the keys: EVAL, EVALSHA, TYPE, EXISTS, GET, GETEX, SET, DEL, PTTL,
//     PEXPIREAT (not where observers judge); and TIME; with a quarantine also INFO, and with plain values
//     PEXPIRETIME; where there is a succession, or requests are heeded, on the keys
//     of the names with ":heir" and ":request" at the end too,
//     and with a hold (Options.Hold) of those with ":hold";
//   - PING, which the client sends on its subscriptions;
//   - on the channels "election:" + key: PUBLISH, SUBSCRIBE and UNSUBSCRIBE. Without them all
//     works, but watches learn of a release only at their next look. The messages have
//     the records in them: whoever may subscribe may read these;
//   - on the channels "__keyspace@<db>__:" + key: SUBSCRIBE and UNSUBSCRIBE. A server that
//     refuses is not asked again by that store until all its watches have ended.
//
// Reading (Get, Watch) is by GETEX, which a server refuses that may not write: a
// replica, a primary without the replicas that min-replicas-to-write demands, one
// that cannot save. It could not vouch for what it shows. The scripts are not
// read-only commands, so that a cluster client with ReadOnly, RouteByLatency or
// RouteRandomly sends them to the primary too.
//
// HandOver and Vacate need the keys of two safes. In a cluster they are in one slot if both
// names have the same hash tag, as "{jobs}" and "{jobs}:heir" do. If not, they return an
// error that matches [errors.ErrUnsupported]: a hand-over takes a Get and a Swap, and a
// release a Get and a Delete. So does a release while the slot migrates.
//
// While a slot of a cluster migrates, creates, swaps and hand-overs fail with TRYAGAIN,
// since they need several keys at one node; refreshes, deletes and reads follow
// the record. With a quarantine, reads need two keys as well. With plain values
// everything does: while the record and its text are at two nodes, the leader
// cannot refresh; nor can anybody tell that the safe is vacant until the slot has
// moved. And MIGRATE keeps the time that is left to a key, not its expiry: two keys
// that it moved one after the other often expire a millisecond apart, and then the
// record is foreign until it is gone, and the leader has lost it. In one MIGRATE,
// as redis-cli moves slots with few keys, they stay together as a rule. When a node of a
// cluster does not answer, the store has the client look up the owners of the
// slots; by itself it would do so once a minute only.
//
// Set ContextTimeoutEnabled in the client's options. Every call returns when its
// context ends, but go-redis itself does not heed a cancellation while it waits
// for a reply, and a deadline only with that option: without it, and after a
// cancellation, one goroutine and one connection of the client's pool stay with
// the abandoned request until the server answers or the client's ReadTimeout
// (5 s by default) has passed.
//
// Where the server is far away, set DisableIdentity too: go-redis closes a
// connection whose answer came too late, and a new one then takes one round trip
// less. A refresh has three tenths of the TTL; let that be four round trips or
// more.
//
// # Cost
//
// Each operation is one EVALSHA, HandOver among them. A leader sends its refreshes.
//
// RefreshAll takes one EVALSHA for each 128 records, with up to four of them at once.
// The script compares the whole text of each record, and sets the expiry where it is the
// one expected. Each record that it does not confirm is then refreshed by an EVALSHA of
// its own, with up to eight at once: one that was lost, or published anew meanwhile. So
// are, from the beginning, records with a text of more than 1 KiB, those with plain values,
// and all records in a cluster, with up to eight at once for each node. To refresh
// 10,000 records with texts of about 200 bytes took the server 36 ms of its processor;
// one by one, it took 650 ms.
//
// A watch looks (one EVALSHA) at its beginning, when its subscription stands,
// after each hint, when the record's expiry is due (within 21 ms after it), and at
// intervals of at most Options.Backstop (1 s, less up to a quarter). So a leader
// learns within about a second that its record was deleted or overwritten. All watches
// of a Store together make up to a hundred looks a second that nothing asked for: with
// more than a hundred safes the intervals are longer, and twenty times as long at vacant ones.
// All who watch a safe by one Store share these looks: they cost about one a second, however
// many wait. With thousands of processes, or with keyspace events, a longer Backstop
// will do. Processes that wait for the same expiry look at moments spread over 20 ms.
// Hints make nobody look more often than every 10 ms.
//
// Hints come from the scripts, which publish each change, at once, with the record that
// they have written and the revision before it. A watch that has shown that revision
// shows the record, and looks after that: a message that is lost, late or false is made
// good by the look. Hints also come from
// keyspace events where the server's notify-keyspace-events has them ("Kg$xe"
// will do), for what other programs do. Neither is needed, and the setting is
// never changed. Without events, another program's DEL or SET is seen at the next
// look, by the intervals above; expiry never depends on events, which were seen
// 39 s late. In a cluster, a node tells of its own keys alone, so that events are
// heard for some keys only.
//
// All watches of a Store share one connection for their subscriptions, pinged
// every 5 s, outside the client's pool; it lasts as long as anybody watches.
//
// A handover to an heir is one EVALSHA of the leader and one look of each process
// that watches the leader's safe. Without an heir it is one EVALSHA, a look of each
// process that waits, and the creates of those who claim.
//
// Where observers judge, a watch looks after each refresh too, and after half the
// record's TTL if nothing hints at one: with a TTL of 15 s, once in five seconds
// more than the Backstop has it look. And it looks once more before it takes a record
// for dead. Where keyspace events are on, each refresh is a hint twice.
package rediskv
