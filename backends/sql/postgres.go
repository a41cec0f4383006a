package sqlkv

import (
	"errors"
	"strings"
)

const postgresTable = `CREATE TABLE IF NOT EXISTS {table} (
	name      text COLLATE "C" PRIMARY KEY,
	signature bytea,
	value     bytea,
	note      bytea,
	token     bigint NOT NULL DEFAULT 0,
	revision  bigint NOT NULL DEFAULT 0,
	ttl       bigint NOT NULL DEFAULT 0,
	updated   timestamptz NOT NULL DEFAULT clock_timestamp(),
	expires   timestamptz,
	UNIQUE (name, token)
) WITH (fillfactor = 70)`

// postgresWords says the statements for PostgreSQL.
//
// clock_timestamp() is read when a row is looked at, also after a wait for its
// lock; now() would be when the transaction began. How long a statement waits
// for a lock is set in the statement itself, for its own transaction, so that
// nothing is left behind on a connection that may be another's the next moment.
//
// The token is in a unique index. So a takeover, which changes it, locks the row
// against FOR KEY SHARE, by which a guard holds it, and a refresh, which does not,
// passes by.
func postgresWords() []string {
	return []string{
		"{unfit}", "CASE WHEN pg_is_in_recovery() THEN 1 ELSE 0 END",
		"{left}", "CAST(EXTRACT(EPOCH FROM expires - clock_timestamp()) * 1000000 AS bigint)",
		"{alien}", "''",
		"{insert}", `INSERT INTO {table} (name, signature) SELECT CAST(:name AS text), ''
FROM (SELECT set_config('lock_timeout', CAST(:patience AS text), TRUE)) AS host
ON CONFLICT DO NOTHING`, // with either index, whichever is the first to see it
		"{waiting}", "",
		"{ttl}", "CAST(:ttl AS bigint)",
		"{now}", "clock_timestamp()",
		"{alive}", "expires > clock_timestamp()",
		"{expired}", "expires <= clock_timestamp()",
		"{lives}", "expires = clock_timestamp() + {ttl} * INTERVAL '1 microsecond'",
		"{lasts}", "expires = clock_timestamp() + ttl * INTERVAL '1 microsecond'",
		"{mark}", "",
		"{draw}", "token = GREATEST(revision + 1, host.micros), revision = GREATEST(revision + 1, host.micros)",
		"{bump}", "revision = revision + 1",
		"{host}", `FROM (SELECT set_config('lock_timeout', CAST(:patience AS text), TRUE),
	CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS bigint) AS micros) AS host
`,
		"{fit}", "",
		"{empty}", "''",
		"{changed}", "\nRETURNING revision, CAST(pg_notify(CAST(:channel AS text), CAST(:name AS text)) AS text)",
		"{refreshed}", "\nRETURNING 0, TRUE, {columns}",
		"{many}", `WITH free AS (
	SELECT name FROM {table} AS safe
	JOIN json_to_recordset(CAST(CAST(:safes AS text) AS json)) AS mine (n text, s text, t bigint) ON name = n
	WHERE signature = decode(s, 'hex') AND token = t AND ttl > 0 AND {alive}
	FOR NO KEY UPDATE OF safe SKIP LOCKED)
UPDATE {table} SET {lasts}, updated = {now}
{host}WHERE name IN (SELECT name FROM free){refreshed}, name`,
		"{renewed}", "",
		"{hold}", " FOR KEY SHARE",
		"{guard}", "SELECT 1 FROM {table} WHERE {owned} FOR KEY SHARE",
	}
}

// postgresNeeds has the two indices that the table is made with. Without a unique
// one that has the token, a takeover would pass by those who hold the row for a
// guard.
func postgresNeeds() []need {
	const index = `SELECT EXISTS (SELECT 1 FROM pg_index WHERE indrelid = to_regclass(CAST(:identifier AS text))
	AND indisunique AND indisvalid AND indpred IS NULL AND indexprs IS NULL AND `
	const keys = `(SELECT count(*) FROM pg_attribute WHERE attrelid = indrelid
	AND array_position(CAST(indkey AS int2[]), attnum) < indnkeyatts AND attname IN `
	return []need{
		uniqueName(index+"indnkeyatts = 1 AND "+keys+"('name')) = 1)", "ALTER TABLE {table} ADD UNIQUE (name)"),
		{
			index + keys + "('name', 'token')) = 2)",
			"name and token are in no unique index, so a guard does not keep others from taking the safe over before the commit",
			"ALTER TABLE {table} ADD UNIQUE (name, token)",
		},
		exactExpiry(`SELECT EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass(CAST(:identifier AS text))
	AND attname = 'expires' AND atttypid = CAST('timestamptz' AS regtype) AND atttypmod IN (-1, 6))`,
			"ALTER TABLE {table} ALTER COLUMN expires TYPE timestamptz"),
	}
}

// sqlState returns the five characters by which PostgreSQL tells errors apart.
func sqlState(err error) string {
	var e interface{ SQLState() string }
	if errors.As(err, &e) {
		return e.SQLState()
	}
	return ""
}

func postgresConflict(err error) bool {
	switch sqlState(err) {
	case "40001", // serialization_failure
		"40P01", // deadlock_detected
		"55P03": // lock_not_available: the wait was too long
		return true
	}
	return false
}

// postgresUnsuited reports whether the server refused a statement for many rows as such,
// or for what is in one of its lines: a name, say, for which the database's encoding has
// no characters.
func postgresUnsuited(err error) bool {
	state := sqlState(err)
	return strings.HasPrefix(state, "22") || // data_exception
		strings.HasPrefix(state, "42") || // syntax_error_or_access_rule_violation
		strings.HasPrefix(state, "0A") // feature_not_supported
}

func postgresMissing(err error) bool {
	switch sqlState(err) {
	case "42P01", // undefined_table
		"42703", // undefined_column
		"3F000": // invalid_schema_name
		return true
	}
	return false
}
