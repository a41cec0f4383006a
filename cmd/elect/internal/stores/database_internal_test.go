package stores

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What there is no server of here to show.
func TestTheDoctorKnowsWhatDatabasesOfOtherKindsCannotPromise(t *testing.T) {
	for what, f := range map[string]Finding{
		"Galera":            cluster(t, map[string]string{"wsrep_on": "ON", "log_bin": "ON"}),
		"group":             cluster(t, map[string]string{"group_replication_group_name": "a"}),
		"binary log":        cluster(t, map[string]string{"log_bin": "ON"}),
		"MySQL's patience":  mysqlPatience("50", 15*time.Second),
		"no known disk":     fileSystem("/proc"),
		"no disk":           fileSystem("/missing"),
		"journal in memory": sqliteJournal("memory", "2"),
		"no journal":        sqliteJournal("OFF", "2"),
		"nothing synced":    sqliteJournal("wal", "0"),
	} {
		require.Equal(t, Warn, f.Level, what)
		require.NotEmpty(t, f.Why, what)
		require.NotEmpty(t, f.Advice, what)
	}
	for what, f := range map[string]Finding{
		"MySQL's patience":  mysqlPatience("1", 15*time.Second),
		"a local disk":      fileSystem(t.TempDir()),
		"SQLite, as it is":  sqliteJournal("delete", "2"),
		"SQLite with a log": sqliteJournal("wal", "1"),
	} {
		require.Equal(t, OK, f.Level, what)
	}
	_, ok := mysqlCluster(map[string]string{"wsrep_on": "OFF", "log_bin": "OFF"})
	require.False(t, ok)
}

func cluster(t *testing.T, found map[string]string) Finding {
	t.Helper()
	f, ok := mysqlCluster(found)
	require.True(t, ok)
	return f
}
