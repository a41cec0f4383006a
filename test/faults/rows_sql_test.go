//go:build linux

package faults

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
)

// sqlRows are about other users of a database.
func sqlRows() []row {
	return []row{
		{
			number: 48, letter: "a", fault: "row locked by another transaction for 2 TTL", only: onSQL,
			must: []oracle.Rule{oracle.LeaderInTime},
			play: func(s *stage) {
				first := s.alive()
				since := boottime.Now()
				release := s.lockRow()
				s.awaitOf(first.Who, history.Ended)
				s.nobody(since, 2*s.ttl)
				s.due("", s.recovery(), "the row was unlocked")
				release()
				s.leader()
				s.pass(s.ttl)
			},
		},
		{
			number: 48, letter: "b", fault: "row locked by another transaction for a tenth of a TTL, again and again", only: onSQL, times: 3,
			must: []oracle.Rule{oracle.LeaderKept, oracle.LeaderInTime},
			play: func(s *stage) {
				first := s.alive()
				s.keep(first, 2*s.ttl)
				for begun := time.Now(); time.Since(begun) < 2*s.ttl; s.pass(s.ttl / 10) {
					release := s.lockRow()
					s.pass(s.ttl / 10)
					release()
				}
				s.handOn(first)
			},
		},
		{
			number: 49, letter: "a", fault: "connections ended by an operator, again and again", own: true, times: 3,
			only: on("nobody ends connections to it by hand", "postgres", "mariadb"),
			must: []oracle.Rule{oracle.LeaderKept, oracle.LeaderInTime},
			play: func(s *stage) {
				first := s.alive()
				s.keep(first, 2*s.ttl)
				for begun := time.Now(); time.Since(begun) < 2*s.ttl; s.pass(s.ttl / 5) {
					s.fault("all connections are ended")
					s.endConnections()
				}
				s.handOn(first)
			},
		},
	}
}

func onSQL(c column) string {
	if !inTable(c.kind) {
		return "it has no tables that transactions lock"
	}
	return ""
}

// lockRow has a transaction of somebody else's lock the safe's row, until release
// is called. In SQLite that locks all.
func (s *stage) lockRow() (release func()) {
	s.t.Helper()
	db, dialect := s.db()
	s.fault("the row is locked by another transaction")
	tx, err := db.BeginTx(s.t.Context(), nil)
	require.NoError(s.t, err)
	_, err = tx.ExecContext(s.t.Context(), say(dialect, "UPDATE election SET value = value WHERE name = ?"), s.name)
	require.NoError(s.t, err)
	return func() {
		s.t.Helper()
		require.NoError(s.t, tx.Rollback())
		s.healed("the row is unlocked")
	}
}

// endConnections ends the connections of all others to the database.
func (s *stage) endConnections() {
	s.t.Helper()
	db, _ := s.db()
	if s.col.kind == kindPostgres {
		_, err := db.ExecContext(s.t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND datname = current_database()`)
		require.NoError(s.t, err)
		return
	}
	rows, err := db.QueryContext(s.t.Context(), "SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND db = DATABASE()")
	require.NoError(s.t, err)
	ids := []int64{}
	for rows.Next() {
		id := int64(0)
		require.NoError(s.t, rows.Scan(&id))
		ids = append(ids, id)
	}
	require.NoError(s.t, rows.Close())
	for _, id := range ids {
		_, _ = db.ExecContext(s.t.Context(), "KILL ?", id) // it may have ended
	}
}
