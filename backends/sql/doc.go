// Package sqlkv keeps safes in a table of a database: PostgreSQL, MySQL or MariaDB, or
// SQLite. Choose it where the processes have such a database already. What the leader
// writes there and the proof that it still leads can be one transaction.
//
//	db, err := sql.Open("pgx", "postgres://…") // of github.com/jackc/pgx/v5/stdlib
//	if err != nil {
//		return err
//	}
//	if err := sqlkv.Migrate(ctx, db, sqlkv.PostgreSQL, nil); err != nil {
//		return err
//	}
//	store := sqlkv.New(db, sqlkv.PostgreSQL, &sqlkv.Options{Driver: pgxdriver.Driver{}})
//	candidate, err := election.New(store, "billing", nil)
//	if err != nil {
//		return err
//	}
//	return candidate.Run(ctx, bill) // func(context.Context, *election.Term) error
//
// With package pgxdriver, below this one, watches hear of changes in PostgreSQL at once;
// other databases need no options. This package links no driver: your program imports
// the one that it needs.
//
// # Guarantees
//
// At most one live record per safe, in a database that keeps what it has committed, as
// long as the clock that judges expiry does not jump. Clients may crash, pause, lose
// messages and be cut off. Each write is one statement with its condition in it,
// committed by itself. No client ever holds a lock while it thinks, so a client that
// freezes does not hold up the others; in SQLite one that freezes in the middle of a write
// does, until it goes on or dies. Of two statements that meet, the database lets
// one win. A deadlock, a serialization failure, a wait for a lock that was too long and
// SQLITE_BUSY mean that nothing was done, and the statement is sent again until its
// context ends. This holds at every isolation level.
//
// PostgreSQL and MySQL judge expiry by the server's wall clock (clock_timestamp(),
// UTC_TIMESTAMP(6); no time zone matters), SQLite by CLOCK_BOOTTIME of the host,
// which nobody can set. Away from Linux that clock is the wall clock.
//
// Only processes of one boot and one time namespace have that clock in common, and a
// container may have a boot id, or a time namespace, of its own on the same host. So
// another boot id does not mean that the owner is dead. A candidate that finds a record
// by another clock observes it. It may replace the record after it has seen it unchanged
// for its TTL, by a statement whose condition is the state that was seen. Between
// containers, and after a restart of the host, a dead owner's record therefore ends one
// TTL after somebody first looked. A Create that is refused writes down what it saw and
// since when. So programs that ask once and end get in as well: a program that asks a
// TTL after the first one, on the same clock, is not refused. Readers write nothing.
//
// A lasting record (kv.Record.Lasting), which keeps an election closed after its leader
// has gone, has no owner to observe. Processes that share the clock of its writer judge
// it by that clock. After a restart of the host, and in other containers, the wall clock
// tells when it is over. If the wall clock is set forward, the record ends that much
// earlier there. If it is set back, the record lasts that much longer; a record that
// would then live for more than its TTL and a second is over at once. PostgreSQL and
// MySQL judge lasting records by the server's clock, as they do all others.
//
// A process or a virtual machine that is restored from a checkpoint (CRIU, a snapshot)
// does not know how long it was away. Its clocks may go on where they stopped; then it
// trusts its record for the time that was left at the checkpoint. That is so with every
// store. The first refresh that fails ends that; until then only a guard stops its
// writes. Two machines made from one snapshot have one boot id and two clocks: never let
// them share the file.
//
// What breaks it, so that a second owner may come while the first still trusts its
// record:
//
//   - The server's wall clock jumps forward. A jump backward keeps a dead owner's
//     record for as long, and in MySQL a live owner's too once that is dead. With
//     [NewObserved], no clock of a server matters.
//   - A failover to a server that does not know the last commits, and a primary that
//     was cut off and goes on beside the new one: see below.
//   - Commits that are not on disk when they are acknowledged: in PostgreSQL
//     synchronous_commit = off or fsync = off, and an UNLOGGED table, which is empty
//     after a crash; in MySQL innodb_flush_log_at_trx_commit other than 1; in SQLite
//     PRAGMA synchronous = OFF, after a power failure.
//   - SQLite on a file system that two kernels see (a network or cluster file system,
//     FUSE, 9p, virtiofs): the locks of one kernel mean nothing to the other. WAL does
//     not work there at all.
//   - Rows that another program changes or deletes. The owner finds out at its next
//     refresh.
//
// Against all of these, and against writes that were on their way while the leader
// slept, write under a guard: [Store.Guard] in a transaction, [Store.Condition] in a
// statement. A takeover waits for the commit. Elsewhere, check the token. A token is the
// number after the row's last number, or the wall clock in microseconds (SQLite: the
// host's) if that is larger. So tokens grow across deletes, expiries, a restart and a
// deleted row, unless the clock has gone back and the row is gone at the same time.
//
// A standby that is promoted knows all that was acknowledged if commits wait for it:
// in PostgreSQL by synchronous_standby_names, with synchronous_commit on, remote_apply
// or (if its host does not crash as well) remote_write. Then terms go on there, and
// tokens grow. The old primary must have ended before that. If it is only cut off, it
// acknowledges nothing more, but it shows commits that the standby never had, whose
// clients have given up the wait. If commits do not wait, the last records may be
// forgotten, and another candidate may be elected while their owners trust them, even
// with the same token if the new primary's clock is behind: elect nobody for a TTL after
// such a failover. In either case a guard holds on the new primary, since it asks that
// one.
//
// With [NewObserved] the row has no expiry, and no clock is in any condition: a
// candidate that has seen one revision for the record's TTL, on its own clock,
// replaces exactly that revision. TTLs are 500 ms or more there. Package observer says
// why that is safe. To a store of one kind, a record of the other kind is another
// program's lock, however old it is. So resign before you change from one to the other,
// or empty the row by hand.
//
// A refresh may be committed after the end of the life that it prolongs, since it reads the time
// before that. A read in between says that the safe is vacant, and the next one shows the record
// again, so a watch may tell of a gap that there was not. Nobody can claim between the two: a
// claim waits for the row's lock, and finds the record alive.
//
// After any error that matches none of package kv's, the write may have happened, or may happen yet:
// a statement that waits in the server for a lock goes on after its caller has gone, and
// then does what its condition allows. PostgreSQL is told to cancel it. MariaDB gives up
// after a second, MySQL after innodb_lock_wait_timeout (50 s): set that lower in the
// data source (innodb_lock_wait_timeout=5).
//
// # Records
//
// A safe is a row of some 200 bytes, which stays for ever after its first record:
//
//	name       the safe's name
//	signature  the owner's; empty if the safe is vacant, NULL if the row is not ours
//	value      what the owner publishes; any bytes
//	note       what candidates tell each other
//	token      of this signature
//	revision   new with each change except a refresh; never the same twice
//	ttl        in microseconds, rounded up
//	updated    when it was last written, for people: it decides nothing
//	expires    when the record expires; NULL if its observers judge that
//	boot, timens   in SQLite: the boot and the time namespace that expires counts in;
//	               timens ends with " until " and Unix µs in a lasting record
//
// In SQLite a row whose name is a blob is what a refused Create has seen of a record by
// another clock. It is deleted when a candidate gets in, or at the next such Create after
// that record has changed. A safe has at most 100 of them: those of the clocks that asked
// last.
//
// To look at it in PostgreSQL, where signature and note are bytea as they may have
// any character:
//
//	SELECT name, convert_from(signature, 'UTF8'), token, updated, expires FROM election
//
// Everything else in a row is foreign: a row without signature, token, revision or TTL.
// So a lock that somebody writes by hand excludes candidates until somebody removes it,
// or until its expiry if it has one. An operator empties a safe in a way that keeps its
// tokens growing:
//
//	INSERT INTO election (name, value) VALUES ('reports', 'maintenance');
//	UPDATE election SET signature = '' WHERE name = 'reports';
//
// Names are 1 to 1,024 bytes of UTF-8 without NUL, compared byte for byte, trailing
// spaces and case included. Signature, value and note have up to 1 MiB together, TTLs
// up to a hundred years.
//
// # Requirements
//
// PostgreSQL 12 or later, by github.com/jackc/pgx/v5/stdlib; MariaDB 10.3 or MySQL
// 8.0 or later, by github.com/go-sql-driver/mysql; SQLite 3.35 or later, by
// modernc.org/sqlite. Tested with PostgreSQL 15, MariaDB 10.11 and that SQLite.
//
// The database/sql pool is the caller's, with any settings: a pool of one connection
// will do. Nothing is left in a session, so the pool may go through a proxy that lends a
// server's connection for a transaction, such as PgBouncer. With Options.Driver, this
// package prepares no statements, whatever the pool's settings are. Without it, or with
// a driver that is wrapped (for tracing, say) and so is not recognised as pgx's, set
// default_query_exec_mode=exec in its data source.
//
// Everything that decides who leads is read from the primary. A standby of PostgreSQL,
// and a server of MySQL with read_only set, is refused with an error. A replica of
// MySQL that is not read_only cannot be recognised, so do not let a proxy send reads to
// one. autocommit=0 in MySQL's data source is refused: nothing would ever be committed.
// In a cluster in which several servers take writes (Galera, a group with several
// primaries), let all candidates use the same server: a guard locks its row on that
// server alone, and each server judges by its own clock.
//
// [Migrate] makes the table, or you make it with the statements of [Migration]. Migrate
// also refuses a table that was made otherwise and lacks what the statements rely on: a
// unique index of the name alone, without which nothing refuses a second claim; and, for
// a guard, in PostgreSQL a unique index with the token, in MySQL an engine with
// transactions. After that a role needs SELECT, INSERT and UPDATE on the table. In MySQL,
// READ COMMITTED for the caller's own guarded transactions saves it gap locks.
//
// For SQLite, journal_mode=WAL lets readers pass writers; a process that is stopped in a
// write of its own holds up all others. The data source's busy_timeout is how long a
// statement waits for a lock. Before its version 1.61 the driver waits to the end,
// whatever the context: keep busy_timeout well under a third of the TTL. It may be zero,
// too, since this package sends the statement again.
//
// # Cost
//
// In statements, each of which is a transaction:
//
//	Create           1: tryReplace; the first of a safe 3: insert, tryReplace again
//	Create, refused  3: the same; SQLite 4: checkUnexpired tells by which clock the
//	                 record is, and if it is another clock 6: sight, sweep
//	Refresh          1: refresh; MySQL 2: it cannot show what it has changed
//	RefreshAll       1 for each 100 records: refreshMany; MySQL 2: renewed
//	Swap             1: publish or handOver
//	Delete           1: release
//	Get              1: checkUnexpired
//
// In SQLite tryReplace, refresh, refreshMany and handOver are sent between BEGIN, lock and
// COMMIT, so that the time is read under the lock. So a statement that waited for the lock
// does not bring back a record that has expired meanwhile.
//
// In MySQL a refusal takes one more, which tells whether the server is one to write to.
// The driver sends each statement in two round trips unless the data source says
// interpolateParams=true. With NewObserved a refresh is a publish.
//
// RefreshAll does not wait for a row that another transaction has locked: a statement for
// many records skips it. That statement confirms the records that it has found and
// refreshed. Each of the others is then refreshed by itself, with up to eight of these at
// once, one in SQLite: those that are lost, those whose rows are locked, and those whose
// value and note have more than 4 KiB. So a row that stays locked costs its own record,
// and delays others only when there are eight such rows. Up to four statements for many
// records are under way at once, one in SQLite. With 10,000 records (SQLite: 3,000) a
// refresh took 0.04 ms in PostgreSQL, 0.07 ms in MariaDB and 0.04 ms in SQLite; by itself
// it took 0.4 ms, 2 ms and 1 ms. A server that refuses refreshMany, as MariaDB does before
// its version 10.6, is asked once for each 100 records, and then for each one by itself.
//
// Candidates that wait for a safe through one Store share their reads (checkUnexpired).
// There is one read when the record is due to expire, within 20 ms after that, and
// between those one every Options.Poll less up to a quarter: about 1.1 per second, after
// three that come sooner when something has changed. So candidates learn of a release
// after half a second on average; after a crash they read when the record ends. With a
// larger Poll they read less often, and see a release later. With NewObserved there is a
// read after half the record's TTL at the latest, since a watch has to see the refreshes.
//
// In PostgreSQL a statement that makes a change tells of it by NOTIFY. With Options.Driver
// watches hear of it, and poll a tenth as often: about once in nine seconds, and once per
// TTL of a record that is refreshed. Refreshes tell nothing, except with NewObserved: there
// each is a change, and each watch reads once for it. To hear, each Store has one
// connection beside the pool, as long as anybody watches. Where it can have none (a
// pooler, a wrapped driver, no connection left), watches poll as often as in the other
// databases; after a connection was lost they first read the safe.
//
// A write of a row in PostgreSQL leaves a dead version behind, for the server's
// autovacuum.
package sqlkv
