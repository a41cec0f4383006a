package stores

import "strings"

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
	noLogin            // the server does not know the user, or the password
	busy               // another process has locked the file of the database
)

// forGood reports whether waiting does not change it: not so of a standby that may be
// promoted, of a table that may be made, and of a lock that may be given up.
func (r refusal) forGood() bool { return r != 0 && r != readOnly && r != noTable && r != busy }

// advice says what would be right where there is no table and none can be made, or
// nothing where the error alone says it.
func (d *Database) advice(err error) string {
	switch d.dialect.refusal(err) {
	case denied:
		if d.file != "" {
			return "this user may not write to the file"
		}
		return "if this user may not make a table, let another carry out: " + d.makes() +
			", and GRANT SELECT, INSERT, UPDATE ON " + d.table() + " to it"
	case readOnly:
		return "the server, or the session, is read only: want the primary"
	case noDatabase:
		return "name another in the URL's path, or have it made by CREATE DATABASE"
	case noSchema:
		if d.options.Schema == "" {
			return "name a schema in the URL (schema=…)"
		}
		return "name another (schema=…), or have it made: CREATE SCHEMA " + d.quote(d.options.Schema)
	case noColumn:
		return "if the table is another program's, name another (table=…)"
	case noFile:
		return "its folder must be there, and this user must be let write to it"
	}
	return ""
}

// makes returns what makes the table, in one line.
func (d *Database) makes() string {
	return strings.Join(strings.Fields(strings.Join(d.migration(), "; ")), " ")
}
