package sqlkv

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
)

const sqliteTable = `CREATE TABLE IF NOT EXISTS {table} (
	name      TEXT NOT NULL PRIMARY KEY,
	signature BLOB,
	value     BLOB,
	note      BLOB,
	token     INTEGER NOT NULL DEFAULT 0,
	revision  INTEGER NOT NULL DEFAULT 0,
	ttl       INTEGER NOT NULL DEFAULT 0,
	updated   TEXT,
	expires   INTEGER,
	boot      TEXT,
	timens    TEXT
)`

// sqliteWords says the statements for SQLite.
//
// An UPDATE on its own takes the write lock before it reads, as BEGIN IMMEDIATE
// does. The time is an argument: the host's clock that nobody can set, in
// nanoseconds, with the name of the boot and of the time namespace in which it
// counts. What begins or prolongs a life takes the lock before the time is read: a refresh
// that waited would bring a record back that others have seen fade meanwhile, and a claim
// could take one of another boot, which had not begun by then, for one that is over. A refresh
// must not shorten a life all the same: earlier versions read the time before.
//
// A record of another boot or namespace is alien: nobody here can tell when it
// expires, so the store observes it. What {alien} says of it changes with each refresh,
// whatever the owner's clock does. To its owner such a record is its own as long as it
// is there: it may have been handed over by a leader with another clock.
//
// A lasting record (kv.Record.Lasting) has nobody who watches it, so timens also says
// when it ends by the wall clock, in microseconds: "time:[4026531834] until 1700…".
// That is for other boots and namespaces; to earlier versions the record is alien. One
// that would live for longer than its TTL shows that the wall clock was set back: it is
// over. The mark is in a column that each new record sets, so that no later one
// inherits it.
func sqliteWords() []string {
	return []string{
		"{unfit}", "0",
		"{left}", "CASE WHEN {here} THEN (expires - :now + 999) / 1000 WHEN {lasting} THEN CASE WHEN {until} - :micros > ttl + {slack} THEN 0 ELSE {until} - :micros END END",
		"{alien}", `CASE WHEN expires IS NULL OR {here} OR {lasting} THEN '' ELSE COALESCE(boot, '') || ' ' || COALESCE(timens, '') || ' ' || expires || ' ' || COALESCE(updated, '') END`,
		"{here}", "boot IS :boot AND substr(timens, 1, instr(timens || ' until ', ' until ') - 1) IS :timens",
		"{lasting}", "expires IS NOT NULL AND instr(timens, ' until ') > 0",
		"{until}", "CAST(substr(timens, instr(timens, ' until ') + 7) AS INTEGER)",
		"{slack}", "1000000",
		"{insert}", "INSERT INTO {table} (name, signature, updated) VALUES (:name, X'', :wall) ON CONFLICT (name) DO NOTHING",
		"{waiting}", "",
		"{ttl}", ":ttl",
		"{now}", ":wall",
		"{alive}", "COALESCE({left} > 0, expires IS NOT NULL)",
		"{expired}", "{left} <= 0",
		"{lives}", "expires = :now + {ttl} * 1000, boot = :boot, timens = :timens || CASE WHEN :lasting THEN ' until ' || (:micros + {ttl}) ELSE '' END",
		"{lasts}", `expires = MAX(CASE WHEN {here} THEN expires ELSE 0 END, :now + ttl * 1000), boot = :boot,
	timens = :timens || CASE WHEN {lasting} THEN ' until ' || MAX({until}, :micros + ttl) ELSE '' END`,
		"{mark}", "",
		"{draw}", "token = MAX(revision + 1, :micros), revision = MAX(revision + 1, :micros)",
		"{bump}", "revision = revision + 1",
		"{host}", "",
		"{fit}", "",
		"{empty}", "X''",
		"{changed}", "\nRETURNING revision, ''",
		"{refreshed}", "\nRETURNING 0, TRUE, {columns}",
		"{many}", `UPDATE {table} SET {lasts}, updated = {now}
WHERE name IN (SELECT json_extract(value, '$.n') FROM json_each(:safes))
	AND typeof(signature) = 'blob' AND (name, hex(signature), token) IN
		(SELECT json_extract(value, '$.n'), json_extract(value, '$.s'), json_extract(value, '$.t') FROM json_each(:safes))
	AND ttl > 0 AND {alive}{refreshed}, name`,
		"{renewed}", "",
		"{hold}", "",
		"{guard}", "UPDATE {table} SET token = token WHERE {owned} RETURNING 1",
	}
}

// underLock carries do out in a transaction that has the write lock, on a connection of its
// own. If it fails it is rolled back, in the file and on the connection. BEGIN IMMEDIATE would
// lock every database that is attached. The lock keeps writers out, not readers: they may see
// the record fade before the commit, if that is slow.
func (t *table) underLock(ctx context.Context, do func(*sql.Conn) error) error {
	conn, err := t.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // it goes back to the pool
	if _, err = conn.ExecContext(ctx, "BEGIN"); err != nil && strings.Contains(err.Error(), "within a transaction") {
		return err // that of somebody who began it by hand
	}
	if err == nil {
		_, err = conn.ExecContext(ctx, t.book.lock.text)
	}
	if err == nil {
		err = do(conn)
	}
	if err == nil {
		_, err = conn.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		rollBack(ctx, conn)
	}
	return err
}

// rollBack ends a transaction, if there is one, or else the connection.
func rollBack(ctx context.Context, conn *sql.Conn) {
	_, err := conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	if err != nil && !strings.Contains(err.Error(), "no transaction is active") {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
}

// sqliteNeeds has what insert says that it conflicts with: without it, that is an
// error. A time that is kept as text is compared as text.
func sqliteNeeds(opts *Options) []need {
	index := Options{Table: opts.name() + "_name"} // beside its table
	if opts != nil {
		index.Schema = opts.Schema
	}
	return []need{
		uniqueName(`SELECT EXISTS (SELECT 1 FROM pragma_index_list(:title, :schema) AS i WHERE i."unique" AND NOT i.partial
	AND (SELECT group_concat(COALESCE(k.name, '') || ' ' || k.coll) FROM pragma_index_xinfo(i.name, :schema) AS k WHERE k.key) = 'name BINARY')`,
			"CREATE UNIQUE INDEX "+index.identifier(SQLite)+" ON "+SQLite.quote(opts.name())+" (name)"),
		exactExpiry(`SELECT NOT EXISTS (SELECT 1 FROM pragma_table_info(:title, :schema) AS c WHERE c.name = 'expires'
	AND (c.type LIKE '%CHAR%' OR c.type LIKE '%CLOB%' OR c.type LIKE '%TEXT%') AND c.type NOT LIKE '%INT%')`,
			"ALTER TABLE {table} ADD COLUMN ends INTEGER; UPDATE {table} SET ends = expires; ALTER TABLE {table} DROP COLUMN expires; ALTER TABLE {table} RENAME COLUMN ends TO expires"),
	}
}

const (
	sqliteBusy   = 5 // SQLITE_BUSY
	sqliteLocked = 6 // SQLITE_LOCKED, between connections that share a cache
)

func sqliteConflict(err error) bool {
	var e interface{ Code() int }
	if !errors.As(err, &e) {
		return false
	}
	primary := e.Code() & 0xff // without what an extended code adds
	return primary == sqliteBusy || primary == sqliteLocked
}

// sqliteMissing looks at the text, since SQLite has one code for all that is
// wrong with a statement.
func sqliteMissing(err error) bool {
	var e interface{ Code() int }
	return errors.As(err, &e) &&
		(strings.Contains(err.Error(), "no such table") || strings.Contains(err.Error(), "no such column"))
}
