package storeurl

import (
	"errors"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
)

// A refusal is why a database does not do what it was asked to.
type refusal int

const (
	_          refusal = iota
	denied             // this user may not
	readOnly           // nobody may, on this server or in this session
	noDatabase         // there is no database of that name
	noSchema           // there is no schema of that name, or none was named
	noColumn           // the table is another program's
	noTable            // the table is not there
	noFile             // the file of the database can be neither opened nor made
)

// refusalOf returns zero if the error is none, or none that a database gives for one
// of these reasons.
func refusalOf(err error) refusal {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return map[string]refusal{
			"42501": denied,   // insufficient_privilege
			"25006": readOnly, // read_only_sql_transaction
			"3D000": noDatabase,
			"3F000": noSchema,
			"42703": noColumn,
			"42P01": noTable, // undefined_table
		}[e.Code]
	}
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return map[uint16]refusal{
			1044: denied,     // ER_DBACCESS_DENIED_ERROR
			1142: denied,     // ER_TABLEACCESS_DENIED_ERROR
			1143: denied,     // ER_COLUMNACCESS_DENIED_ERROR
			1227: denied,     // ER_SPECIFIC_ACCESS_DENIED_ERROR
			1290: readOnly,   // ER_OPTION_PREVENTS_STATEMENT
			1792: readOnly,   // ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION
			1836: readOnly,   // ER_READ_ONLY_MODE
			1049: noDatabase, // ER_BAD_DB_ERROR
			1054: noColumn,   // ER_BAD_FIELD_ERROR
			1146: noTable,    // ER_NO_SUCH_TABLE
		}[e.Number]
	}
	if e, ok := errors.AsType[interface {
		error
		Code() int
	}](err); ok {
		switch e.Code() & 0xff { // without what an extended code adds
		case 3, 8: // SQLITE_PERM, SQLITE_READONLY
			return denied
		case 14: // SQLITE_CANTOPEN
			return noFile
		case 1: // SQLITE_ERROR, which is all that is wrong with a statement
			switch {
			case strings.Contains(e.Error(), "no such column"):
				return noColumn
			case strings.Contains(e.Error(), "no such table"):
				return noTable
			}
		}
	}
	return 0
}

// advice says what would be right where there is no table and none can be made, or
// nothing where the error alone says it.
func (d *Database) advice(err error) string {
	switch refusalOf(err) {
	case denied:
		if d.File != "" {
			return "this user may not write to the file"
		}
		return "if this user may not make a table, let another carry out: " + d.makes() +
			", and GRANT SELECT, INSERT, UPDATE ON " + d.Table() + " to it"
	case readOnly:
		return "the server, or the session, is read only: want the primary"
	case noDatabase:
		return "name another in the URL's path, or have it made by CREATE DATABASE"
	case noSchema:
		if d.Options.Schema == "" {
			return "name a schema in the URL (schema=…)"
		}
		return "name another (schema=…), or have it made: CREATE SCHEMA " + d.quote(d.Options.Schema)
	case noColumn:
		return "if the table is another program's, name another (table=…)"
	case noFile:
		return "its folder must be there, and this user must be let write to it"
	}
	return ""
}

// makes returns what makes the table, in one line.
func (d *Database) makes() string {
	return strings.Join(strings.Fields(strings.Join(d.Migration(), "; ")), " ")
}
