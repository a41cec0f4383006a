package sqlkv

import (
	"slices"
	"strings"
)

// The statements, named after those of the classic lock in a table. Each is one
// step of the database: its condition and its write cannot be parted. Words in
// braces are said by each dialect in its own way, and by who judges expiry; what
// begins with a colon is an argument.
const (
	// checkUnexpired reads a safe, and always has one row, so that it also tells
	// whether the server may be asked at all.
	checkUnexpired = `SELECT {unfit}, name IS NOT NULL, ` + columns + `
FROM (SELECT 1 AS one) AS here LEFT JOIN {table} ON name = :name`

	// insert makes the row of a safe that nobody ever used, vacant.
	insert = `{insert}`

	// tryReplace puts a record into a vacant safe.
	tryReplace = `{waiting}UPDATE {table} SET signature = :signature, value = :value, note = :note,
	ttl = {ttl}, {lives}, {draw}, updated = {now}
{host}WHERE name = :name AND (LENGTH(signature) = 0 OR {expired}){fit}{changed}`

	// refresh starts the record's life anew.
	refresh = `{waiting}UPDATE {table} SET {lasts}, {mark}updated = {now}
{host}WHERE {owned}{fit}{refreshed}`

	// refreshMany is refresh for a list of records. It passes by rows that somebody has
	// locked, and shows each row that it has refreshed, with the name.
	refreshMany = `{many}`

	// renewed shows the rows of a list whose records last as if they were refreshed at
	// the time given, or later. It is for MySQL, whose refreshMany shows no rows.
	renewed = `{renewed}`

	// publish changes what the owner tells.
	publish = `{waiting}UPDATE {table} SET value = :value, note = :note, {renew}{bump}, updated = {now}
{host}WHERE {owned} AND revision = :revision{fit}{changed}`

	// handOver puts another record into the place of one that was seen.
	handOver = `{waiting}UPDATE {table} SET signature = :next, value = :value, note = :note,
	ttl = {ttl}, {lives}, {draw}, updated = {now}
{host}WHERE {owned} AND revision = :revision{fit}{changed}`

	// outlive puts a record into the place of one that was observed for its TTL.
	outlive = `UPDATE {table} SET signature = :next, value = :value, note = :note,
	ttl = {ttl}, {lives}, {draw}, updated = {now}
{host}WHERE {owned} AND revision = :revision AND {alien} = :alien{changed}`

	// sight writes down since when a record is observed, unless that is written down.
	// The name is in bytes, by which no safe has one.
	sight = `INSERT INTO {table} (name, value, expires, updated) VALUES (:sighting, :seen, :now, :wall)
ON CONFLICT (name) DO UPDATE SET
	expires = CASE WHEN value = excluded.value THEN MIN(expires, excluded.expires) ELSE excluded.expires END,
	value = excluded.value, updated = excluded.updated
RETURNING expires`

	// sweep removes the sightings of a safe that are of a state that never comes back, and
	// of the others those of all clocks but the ones that asked last.
	sweep = `DELETE FROM {table} WHERE name >= :sightings AND name < :sightingsend AND name <> :sighting
	AND name NOT IN (SELECT name FROM {table} WHERE name >= :sightings AND name < :sightingsend AND name <> :sighting
		AND value = :seen ORDER BY updated DESC LIMIT :others)`

	// unsight removes what was written down of a safe.
	unsight = `DELETE FROM {table} WHERE name >= :sightings AND name < :sightingsend`

	// release empties the safe. The row stays, so that tokens grow.
	release = `{waiting}UPDATE {table} SET signature = {empty}, value = {empty}, note = {empty},
	expires = NULL, {bump}, updated = {now}
{host}WHERE {owned}{at}{fit}{changed}`

	// lock changes nothing, and takes SQLite's write lock for the transaction.
	lock = `UPDATE {table} SET token = token WHERE 1 = 0`

	// guard holds the row, as it is, against others until the transaction ends.
	guard = `{guard}`

	// condition holds while the safe holds a record, and holds the row likewise.
	condition = `EXISTS (SELECT 1 FROM {table} WHERE {owned}{hold})`
)

const (
	// columns are what a row consists of: see row.
	columns = `signature, value, note, token, revision, ttl, expires IS NOT NULL, {left}, {alien}`

	owned = `name = :name AND signature = :signature AND token = :token AND ttl > 0 AND {alive}`
)

// A judge says by what a record lives.
type judge int

const (
	byStore judge = iota
	// byObservers is for records that have no expiry in the store.
	byObservers
)

// words returns what the judge has to say in the statements.
func (j judge) words() []string {
	if j == byStore {
		return []string{"{renew}", "", "{at}", ""}
	}
	return []string{
		"{alive}", "expires IS NULL",
		"{expired}", "1 = 0",
		"{lives}", "expires = NULL",
		"{renew}", "ttl = {ttl}, ",
		"{at}", " AND revision = :revision",
	}
}

// A statement is what the database is told, and the arguments that it takes.
type statement struct {
	text   string
	params []string
	dated  bool // it begins or prolongs a life, so that it must know the time at which it is carried out
}

// values are the arguments of statements, by name.
type values map[string]any

// args returns the arguments in the statement's order.
func (st statement) args(v values) []any {
	args := make([]any, len(st.params))
	for i, name := range st.params {
		args[i] = v[name]
	}
	return args
}

// A phrasebook has the statements in one dialect, for one table.
type phrasebook struct {
	dialect Dialect
	words   *strings.Replacer

	checkUnexpired, insert, tryReplace, refresh, publish, handOver, release, guard statement
	refreshMany                                                                    statement
	renewed                                                                        statement // of MySQL
	outlive, sight, sweep, unsight, lock                                           statement // of SQLite
}

func newPhrasebook(d Dialect, j judge, table string) *phrasebook {
	// The first of two that say the same word is heard.
	words := append(j.words(), d.words()...)
	words = append(words, "{owned}", owned, "{columns}", columns, "{table}", table)
	p := &phrasebook{dialect: d, words: strings.NewReplacer(words...)}
	p.checkUnexpired = p.say(checkUnexpired, 0)
	p.insert = p.say(insert, 0)
	p.tryReplace = p.say(tryReplace, 0)
	p.refresh = p.say(refresh, 0)
	p.refreshMany, p.renewed = p.say(refreshMany, 0), p.say(renewed, 0)
	p.publish = p.say(publish, 0)
	p.handOver = p.say(handOver, 0)
	p.release = p.say(release, 0)
	p.guard = p.say(guard, 0)
	p.outlive, p.sight = p.say(outlive, 0), p.say(sight, 0)
	p.lock = p.say(lock, 0)
	for _, st := range []*statement{&p.tryReplace, &p.refresh, &p.refreshMany, &p.handOver} {
		st.dated = d == SQLite && j == byStore
	}
	p.sweep, p.unsight = p.say(sweep, 0), p.say(unsight, 0)
	return p
}

// say returns a statement whose arguments come after so many others.
func (p *phrasebook) say(text string, after int) statement {
	for strings.Contains(text, "{") { // words may have words in them
		text = p.words.Replace(text)
	}
	var st statement
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, ":")
		b.WriteString(before)
		if !found {
			st.text = b.String()
			return st
		}
		name := rest[:len(rest)-len(strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyz"))]
		text = rest[len(name):]
		place := slices.Index(st.params, name)
		if place < 0 || p.dialect == MySQL {
			place = len(st.params)
			st.params = append(st.params, name)
		}
		b.WriteString(p.dialect.placeholder(after + place + 1))
	}
}
