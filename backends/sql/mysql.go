package sqlkv

import (
	"errors"
	"reflect"
)

const mysqlTable = `CREATE TABLE IF NOT EXISTS {table} (
	name      VARBINARY(1024) NOT NULL PRIMARY KEY,
	signature LONGBLOB,
	value     LONGBLOB,
	note      LONGBLOB,
	token     BIGINT NOT NULL DEFAULT 0,
	revision  BIGINT NOT NULL DEFAULT 0,
	ttl       BIGINT NOT NULL DEFAULT 0,
	updated   DATETIME(6),
	expires   DATETIME(6)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC`

// mysqlWords says the statements for MySQL and MariaDB.
//
// UTC_TIMESTAMP is the time at which a statement began, also after a wait for a
// lock. For others that is too early to take a record for expired, never too late;
// a refresh that was overtaken while it waited must not shorten the life that a
// later one has given. No time zone matters.
//
// There is no UPDATE … RETURNING, and the number of affected rows means one thing
// or another by the client's settings. So each change hands a number on by
// LAST_INSERT_ID: it is 0 if, and only if, no row was changed.
//
// The comment in {waiting} is a comment to MySQL and a statement to MariaDB. MySQL
// waits as long as the session's innodb_lock_wait_timeout says.
//
// A session without autocommit would be told of writes that nobody else ever sees;
// a server that is read only may be written to by root.
//
// The inner statement of refreshMany is a table of its own, by its LIMIT, and takes
// the locks that the outer one needs. JSON_TABLE and SKIP LOCKED came with MySQL 8.0 and
// MariaDB 10.6; earlier servers understand none of it: see mysqlUnsuited. The number
// that it hands on is the time at which it began, since there are several revisions.
func mysqlWords() []string {
	const mine = "JSON_TABLE(:safes, '$[*]' COLUMNS (n VARCHAR(2048) PATH '$.n', s LONGTEXT PATH '$.s', t BIGINT PATH '$.t')) AS mine"
	const micros = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"
	return []string{
		"{unfit}", "CASE WHEN CONCAT(@@global.read_only) NOT IN ('0', 'OFF') THEN 1 WHEN @@autocommit <> 1 THEN 2 ELSE 0 END",
		"{left}", "TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires)",
		"{alien}", "''",
		"{insert}", "{waiting}INSERT IGNORE INTO {table} (name, signature, updated) VALUES (:name, '', UTC_TIMESTAMP(6))",
		"{waiting}", "/*M!100100 SET STATEMENT innodb_lock_wait_timeout = {seconds} FOR */ ",
		"{seconds}", "1",
		"{ttl}", ":ttl",
		"{now}", "UTC_TIMESTAMP(6)",
		"{alive}", "expires > UTC_TIMESTAMP(6)",
		"{expired}", "expires <= UTC_TIMESTAMP(6)",
		"{lives}", "expires = UTC_TIMESTAMP(6) + INTERVAL :ttl MICROSECOND",
		"{lasts}", "expires = GREATEST(expires, UTC_TIMESTAMP(6) + INTERVAL ttl MICROSECOND)",
		"{mark}", "revision = LAST_INSERT_ID(revision), ",
		"{draw}", "token = LAST_INSERT_ID(GREATEST(revision + 1, " + micros + ")), revision = GREATEST(revision + 1, " + micros + ")",
		"{bump}", "revision = LAST_INSERT_ID(revision + 1)",
		"{host}", "",
		"{fit}", " AND @@autocommit = 1 AND CONCAT(@@global.read_only) IN ('0', 'OFF')",
		"{empty}", "''",
		"{changed}", "",
		"{refreshed}", "",
		"{many}", `{waiting}UPDATE {table} AS safe JOIN (
	SELECT name FROM ` + mine + ` STRAIGHT_JOIN {table} ON name = UNHEX(n)
	WHERE signature = UNHEX(s) AND token = t AND ttl > 0 AND {alive}
	LIMIT 1000000 FOR UPDATE SKIP LOCKED) AS free ON safe.name = free.name
SET {lasts}, revision = revision + 0 * LAST_INSERT_ID(` + micros + `), updated = {now}
WHERE TRUE{fit}`,
		"{renewed}", `SELECT {unfit}, TRUE, {columns}, name
FROM ` + mine + ` STRAIGHT_JOIN {table} ON name = UNHEX(n)
WHERE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', expires) >= :since + ttl`,
		"{hold}", " LOCK IN SHARE MODE",
		"{guard}", "SELECT 1 FROM {table} WHERE {owned} LOCK IN SHARE MODE",
	}
}

// mysqlNeeds asks whether the engine has transactions, since others lock no rows for
// a guard. An index of the first bytes of names would take two names for one.
func mysqlNeeds() []need {
	const here = "table_schema = COALESCE(:schema, DATABASE()) AND table_name = :title"
	const column = "(SELECT COUNT(*) FROM information_schema.columns WHERE " + here + " AND "
	return []need{
		uniqueName(`SELECT EXISTS (SELECT index_name FROM information_schema.statistics WHERE `+here+`
	GROUP BY index_name HAVING COUNT(*) = 1 AND MAX(non_unique) = 0 AND MAX(column_name) = 'name' AND MAX(sub_part) IS NULL)`,
			"ALTER TABLE {table} ADD UNIQUE (name)"),
		{
			`SELECT EXISTS (SELECT 1 FROM information_schema.tables t JOIN information_schema.engines e ON e.engine = t.engine
	WHERE ` + here + ` AND e.transactions = 'YES')`,
			"its engine has no transactions, so a guard holds nothing, and a crash may take back what was acknowledged",
			"ALTER TABLE {table} ENGINE = InnoDB",
		},
		exactExpiry("SELECT "+column+"column_name = 'expires' AND column_type = 'datetime(6)') = 1",
			"ALTER TABLE {table} MODIFY expires DATETIME(6)"),
		{
			"SELECT " + column + "column_name IN ('token', 'revision', 'ttl') AND data_type = 'bigint') = 3",
			"a number in it has another type than BIGINT, so it may be cut off: then tokens do not grow",
			"ALTER TABLE {table} MODIFY token BIGINT NOT NULL DEFAULT 0, MODIFY revision BIGINT NOT NULL DEFAULT 0, MODIFY ttl BIGINT NOT NULL DEFAULT 0",
		},
	}
}

// mysqlNumber returns the number by which MySQL tells errors apart. It is a field of the
// driver's error and no method tells it, so the field is looked up by its name: who
// imports the driver for its type links it, whatever database it uses.
func mysqlNumber(err error) uint16 {
	switch e := err.(type) { //nolint:errorlint // this is how errors.As walks
	case nil:
		return 0
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			if n := mysqlNumber(inner); n != 0 {
				return n
			}
		}
		return 0
	}
	v := reflect.Indirect(reflect.ValueOf(err))
	if v.Kind() == reflect.Struct && v.Type().Name() == "MySQLError" {
		if n := v.FieldByName("Number"); n.IsValid() && n.CanUint() {
			return uint16(n.Uint())
		}
	}
	return mysqlNumber(errors.Unwrap(err))
}

// mysqlConflict knows nothing of 1180, an error during a commit: what became of
// that is unknown.
func mysqlConflict(err error) bool {
	switch mysqlNumber(err) {
	case 1213, // ER_LOCK_DEADLOCK, and a write set that a cluster refused
		1205, // ER_LOCK_WAIT_TIMEOUT
		1020: // ER_CHECKREAD: the row was changed since the transaction's snapshot
		return true
	}
	return false
}

// mysqlUnsuited reports whether the server refused a statement for many rows. It carries
// out all of a statement or nothing, and there are servers that do not understand this
// one, or for which somebody has locked more than its rows.
func mysqlUnsuited(err error) bool { return mysqlNumber(err) != 0 }

func mysqlMissing(err error) bool {
	switch mysqlNumber(err) {
	case 1146, // ER_NO_SUCH_TABLE
		1054, // ER_BAD_FIELD_ERROR
		1049: // ER_BAD_DB_ERROR
		return true
	}
	return false
}
