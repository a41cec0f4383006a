package sqlkv

import (
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
// counts. Records of another boot have outlived their owners. Those of another
// namespace cannot be judged. The time was read before a wait for the lock, so it
// may be early, and a refresh must not shorten a life.
func sqliteWords() []string {
	return []string{
		"{unfit}", "0",
		"{left}", "CASE WHEN boot <> :boot THEN 0 WHEN timens = :timens THEN (expires - :now + 999) / 1000 END",
		"{insert}", "INSERT INTO {table} (name, signature, updated) VALUES (:name, X'', :wall) ON CONFLICT (name) DO NOTHING",
		"{waiting}", "",
		"{ttl}", ":ttl",
		"{now}", ":wall",
		"{alive}", "boot = :boot AND timens = :timens AND expires > :now",
		"{expired}", "expires IS NOT NULL AND (boot <> :boot OR timens = :timens AND expires <= :now)",
		"{lives}", "expires = :now + {ttl} * 1000, boot = :boot, timens = :timens",
		"{lasts}", "expires = MAX(expires, :now + ttl * 1000)",
		"{mark}", "",
		"{draw}", "token = MAX(revision + 1, :micros), revision = MAX(revision + 1, :micros)",
		"{bump}", "revision = revision + 1",
		"{host}", "",
		"{fit}", "",
		"{empty}", "X''",
		"{changed}", "\nRETURNING revision, ''",
		"{refreshed}", "\nRETURNING 0, TRUE, {columns}",
		"{hold}", "",
		"{guard}", "UPDATE {table} SET token = token WHERE {owned} RETURNING 1",
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
