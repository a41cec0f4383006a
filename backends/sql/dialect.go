package sqlkv

import (
	"fmt"
	"strconv"
	"strings"
)

// A Dialect says which database a store is in, and how its statements are written.
type Dialect int

const (
	// PostgreSQL is PostgreSQL, by the driver of github.com/jackc/pgx/v5/stdlib.
	PostgreSQL Dialect = iota + 1
	// MySQL is MySQL and MariaDB, by github.com/go-sql-driver/mysql.
	MySQL
	// SQLite is SQLite, by modernc.org/sqlite.
	SQLite
)

// String returns the database's name.
func (d Dialect) String() string {
	switch d {
	case PostgreSQL:
		return "PostgreSQL"
	case MySQL:
		return "MySQL"
	case SQLite:
		return "SQLite"
	}
	return fmt.Sprintf("Dialect(%d)", int(d))
}

// words returns what stands for the words in braces of the statements, in pairs
// as strings.NewReplacer takes them.
func (d Dialect) words() []string {
	switch d {
	case PostgreSQL:
		return postgresWords()
	case MySQL:
		return mysqlWords()
	default:
		return sqliteWords()
	}
}

// schema returns the statement that makes the table.
func (d Dialect) schema() string {
	switch d {
	case PostgreSQL:
		return postgresTable
	case MySQL:
		return mysqlTable
	default:
		return sqliteTable
	}
}

// needs returns what the table must have besides its columns.
func (d Dialect) needs(opts *Options) []need {
	switch d {
	case PostgreSQL:
		return postgresNeeds()
	case MySQL:
		return mysqlNeeds()
	default:
		return sqliteNeeds(opts)
	}
}

// quote returns an identifier so that it means itself.
func (d Dialect) quote(name string) string {
	if d == MySQL {
		return "`" + strings.ReplaceAll(name, "`", "``") + "`"
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// placeholder returns what stands for the n-th argument. In MySQL every place
// has an argument of its own.
func (d Dialect) placeholder(n int) string {
	switch d {
	case PostgreSQL:
		return "$" + strconv.Itoa(n)
	case MySQL:
		return "?"
	default:
		return "?" + strconv.Itoa(n)
	}
}

// conflict reports whether the database says that a statement met another
// transaction, lost, and did nothing: it can be tried again.
func (d Dialect) conflict(err error) bool {
	switch d {
	case PostgreSQL:
		return postgresConflict(err)
	case MySQL:
		return mysqlConflict(err)
	default:
		return sqliteConflict(err)
	}
}

// unsuited reports whether a statement for many rows did nothing, for a reason that
// statements for single rows need not meet.
func (d Dialect) unsuited(err error) bool {
	switch d {
	case PostgreSQL:
		return postgresUnsuited(err)
	case MySQL:
		return mysqlUnsuited(err)
	default:
		return false
	}
}

// width returns how many of so many statements are worth sending at once. SQLite has one
// writer at a time: the others would only be told to come again.
func (d Dialect) width(most int) int {
	if d == SQLite {
		return 1
	}
	return most
}

// missing reports whether the table, or a column of it, is not there.
func (d Dialect) missing(err error) bool {
	switch d {
	case PostgreSQL:
		return postgresMissing(err)
	case MySQL:
		return mysqlMissing(err)
	default:
		return sqliteMissing(err)
	}
}
