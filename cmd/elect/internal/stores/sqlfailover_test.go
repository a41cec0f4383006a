//go:build unix

package stores_test

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/cmd/elect/internal/stores"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// follow has commits of the primary wait for its standby, from now on.
func follow(t *testing.T, primary *testenv.Server, database string, standby *testenv.Server) {
	t.Helper()
	do := ofPostgres(t, primary.Addr(), database)
	do("ALTER SYSTEM SET synchronous_standby_names = '*'")
	do("SELECT pg_reload_conf()")
	waits := open(t, testenv.PostgresURL(primary.Addr(), database)).Backend.(*stores.Database)
	require.Eventually(t, func() bool {
		var n int
		require.NoError(t, waits.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'").Scan(&n))
		return n == 1
	}, time.Minute, 20*time.Millisecond)
	require.NoError(t, reach(t, testenv.PostgresURL(primary.Addr(), database), nil)) // makes the table, there as well
}

// TestAnElectionOutlivesTheFailoverOfAPostgreSQL has the primary be killed and its
// standby, for which commits wait, be promoted. What was acknowledged is there: the
// leader leads on, and the next one has a larger token.
func TestAnElectionOutlivesTheFailoverOfAPostgreSQL(t *testing.T) {
	primary := testenv.StartPostgres(t)
	database := testenv.NewPostgresDatabase(t, primary.Addr())
	standby := testenv.StartPostgresStandby(t, primary)
	follow(t, primary, database, standby)
	both := strings.Replace(testenv.PostgresURL(primary.Addr(), database), primary.Addr(), primary.Addr()+","+standby.Addr(), 1)
	byName := testenv.PostgresURL("", database)
	_, port, _ := net.SplitHostPort(primary.Addr())
	_, another, _ := net.SplitHostPort(standby.Addr())
	t.Setenv("PGHOST", "127.0.0.1,127.0.0.1")
	t.Setenv("PGPORT", another+","+port)
	env := map[string]string{"PGHOST": os.Getenv("PGHOST")}
	require.NoError(t, reach(t, byName, env), "the standby comes first")
	env["PGTARGETSESSIONATTRS"] = "any"
	t.Setenv("PGTARGETSESSIONATTRS", "any")
	require.ErrorContains(t, reach(t, byName, env), "want the primary", "it is as one says")
	require.NoError(t, reach(t, both+"&target_session_attrs=primary", nil))
	require.NoError(t, os.Unsetenv("PGTARGETSESSIONATTRS"))
	leader, other := open(t, both), open(t, both+"&target_session_attrs=primary")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	lead := func(store kv.Store) (*election.Term, error) {
		c, err := election.New(store, "jobs", &election.Options{TTL: 30 * time.Second})
		require.NoError(t, err)
		return c.Campaign(ctx)
	}
	term, err := lead(leader.KV)
	require.NoError(t, err)
	waiting := make(chan *election.Term, 1)
	failed := make(chan error, 1)
	go func() {
		next, err := lead(other.KV)
		waiting <- next
		failed <- err
	}()

	primary.Kill()
	ofPostgres(t, standby.Addr(), database)("SELECT pg_promote()")
	require.Eventually(t, func() bool { return term.Proclaim(ctx, "from the other side") == nil },
		20*time.Second, 50*time.Millisecond, "what was acknowledged is not there")
	rec, err := open(t, testenv.PostgresURL(standby.Addr(), database)).KV.Get(ctx, "jobs")
	require.NoError(t, err)
	require.Equal(t, term.Token(), rec.Token)
	require.Equal(t, "from the other side", rec.Value)

	require.NoError(t, term.Resign(ctx))
	next := <-waiting
	require.NoError(t, <-failed)
	require.Greater(t, next.Token(), term.Token())
	require.NoError(t, next.Resign(ctx))
}

// TestAHostThatIsSilentIsPassedBy has the first of two take connections and answer
// nobody, as one that is frozen.
func TestAHostThatIsSilentIsPassedBy(t *testing.T) {
	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	addr := testenv.Postgres(t)
	url := testenv.PostgresURL(addr, testenv.NewPostgresDatabase(t, addr))
	both := strings.Replace(url, addr, silent.Addr().String()+","+addr, 1)
	require.NoError(t, reach(t, both, nil))
	require.NoError(t, reach(t, both+"&target_session_attrs=primary", nil))
}
