// Package interop lets processes with the locks that services already have share
// one key with candidates of this library, on real servers, as they do while a
// service is migrated. It is a module of its own, for the clients of those locks.
//
// # A fleet
//
// Two processes with an old lock and two with ours stand for one key, each by a
// link of its own. While they do, a director at random has whoever holds give
// up, kills processes and starts them again, puts them to sleep for longer than
// the TTL and wakes them, cuts them off or drops what they send and are sent. It
// troubles one process of each kind at a time, so that each kind can always come.
// What it does follows from -interop.seed and the test's name.
//
//	make test/interop STRETCH=1m
//	go test . -run 'TestFleetsInRedis/redsync' -interop.stretch=1m -interop.seed=7
//
// The old locks are used as their documents say, by their own clients:
//
//   - in Redis: redsync; redislock, and what its change #94 writes, with a
//     counter beside the lock, which no release has and which is imitated; and
//     rueidislock, with a majority of one; by hand, SET NX PX released by Lua,
//     by a bare DEL, and SETNX whose EXPIRE never came;
//   - in Consul: api.Lock, and the command "consul lock";
//   - in etcd: Mutex and Election of package concurrency, the commands "etcdctl
//     lock" and "etcdctl elect".
//
// Ours run with the default text and with plain values, in etcd with the layouts
// Queue and Claim.
//
// # What is judged
//
// Each process writes down what it believes before it acts on it, by the boot
// clock that all share, and the store is looked at by its own client some sixty
// times a second. Package coexist judges both; its documentation says what is
// demanded of whom. In short:
//
//   - A term of ours counts in full, from before its leader is told to the end of
//     its context. While it lasts its record is in the store. It overlaps no other
//     term of ours, no time at which the store shows somebody else's record, and
//     no old lock's belief for as long as that is in its right.
//   - An old lock is in its right until the last renewal that it knows was
//     granted, counted from the send, plus the TTL; less 2 ms in Redis, which
//     rounds. Where the client hides its renewals (api.Lock, sessions of etcd,
//     rueidislock, the commands) the store's own view takes that place: the
//     holder is whoever the store shows, also if that process is dead.
//   - The record of an old lock goes only when its holder has asked for it, or
//     what keeps it has run out: the TTL that Redis told, the session of Consul,
//     the lease of etcd, each of which is asked for when the record is gone.
//   - A belief of an old lock beyond that is a flaw of the old lock. It is
//     counted and logged, and fails nothing.
//
// This is honest because nothing that ours is answerable for is left out: what
// lets two hold at once is either a term of ours that began or went on while the
// store had let another in, or an old lock's record that was taken away before
// its time. Both are demanded not to be. That an old process believes longer than
// its store does is so without us; that the store let the next one in was right.
//
// A bare DEL is a delete of ours if its process believes beyond its right. No
// store can refuse it. It is told by what it took, which the old process reads in
// the same MULTI; the leader of ours must be gone within a TTL: no refresh is
// granted after the DEL, so its trust has run out by then, by its own clock, however slow
// the machine is. Whoever gets in between the two is excused, and counted. A DEL that
// took nothing, or another's record, excuses nothing.
//
// # What else is demanded
//
//   - Both kinds lead, and neither is shut out for longer than so many terms and
//     three deaths in a row take. In a queue that is eight, and no kind leads more
//     often in a row: whoever was killed, cut off or at rest goes to its end. Where
//     there is none it is luck, and the old ones' rest between two terms, that
//     lets the others in: ten in Redis, twenty in Consul. With the layout Claim ours may
//     starve while old ones queue, and must lead when they have gone.
//   - Tokens of ours grow; in etcd those of both kinds do, in the order of holding.
//   - Observers of the old kind (GET, KV().Get, Election.Observe, "etcdctl elect
//     --listen") read what ours publish, and election.Watch reports every old
//     holder that lasts, as foreign, with what it has published.
//   - Processes of ours end by themselves when they are told to.
//
// Mistakes that are planted in ours, one at a time, turn the oracle red on each
// store: see TestPlantedMistakesAreFound and TestABareDelEndsATermOfOursInTime.
//
// # What is not shown
//
// Killed processes take their children with them. The servers stay healthy: that
// they fail is for test/faults. Sessions of "consul lock" last 15 s at least, so
// its processes are not killed or cut off at random, but once, and waited for;
// those of "etcdctl elect" last a minute: an operator ends the dead ones', and its
// processes are not cut off, since nobody would end what they cannot give back.
// Several pools of redsync and several keys of rueidislock are no single key, and
// cannot be shared: see the documents of package rediskv.
package interop
