package testenv_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

func TestRedisTellsTheTimeThatItsClockWasSetTo(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedisWithClock(t)
	client := redisClient(t, server.Addr())
	requireOffset(t, client, 0)
	server.SetClock(-time.Hour)
	requireOffset(t, client, -time.Hour)
	server.JumpClock(90 * time.Minute)
	requireOffset(t, client, 30*time.Minute)
	server.Restart()
	requireOffset(t, client, 30*time.Minute)
	server.SetClock(0)
	requireOffset(t, client, 0)
}

func TestKeyExpiresByTheClockThatJumps(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedisWithClock(t)
	client := redisClient(t, server.Addr())
	require.NoError(t, client.Set(within(t), "early", "v", time.Minute).Err())
	require.NoError(t, client.Set(within(t), "later", "v", time.Hour).Err())

	server.JumpClock(2 * time.Minute)
	require.ErrorIs(t, client.Get(within(t), "early").Err(), redis.Nil)
	require.Less(t, client.PTTL(within(t), "later").Val(), 59*time.Minute)

	server.JumpClock(-2 * time.Hour)
	require.Greater(t, client.PTTL(within(t), "later").Val(), 2*time.Hour)
}

func TestDatabasesTellTheTimeThatTheirClockWasSetTo(t *testing.T) {
	t.Parallel()
	for _, s := range []struct {
		name  string
		start func(testing.TB, ...string) *testenv.Server
		now   func(t *testing.T, addr string) time.Time
	}{
		{"postgres", testenv.StartPostgresWithClock, postgresTime},
		{"mariadb", testenv.StartMariaDBWithClock, mariadbTime},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			server := s.start(t)
			for _, step := range []struct {
				move   func()
				offset time.Duration
			}{
				{func() {}, 0},
				{func() { server.SetClock(-time.Hour) }, -time.Hour},
				{func() { server.JumpClock(90 * time.Minute) }, 30 * time.Minute},
				{server.Restart, 30 * time.Minute},
				{func() { server.SetClock(0) }, 0},
			} {
				step.move()
				least := time.Now().Add(step.offset - 10*time.Millisecond)
				require.WithinRange(t, s.now(t, server.Addr()), least, time.Now().Add(step.offset+10*time.Millisecond))
			}
		})
	}
}

func TestMariaDBWaitsForALockAsLongAsItSaysAfterItsClockHasJumped(t *testing.T) {
	t.Parallel()
	server := testenv.StartMariaDBWithClock(t)
	database := testenv.NewMySQLDatabase(t, server.Addr())
	db := openMariaDB(t, server.Addr(), database)
	_, err := db.ExecContext(within(t), "CREATE TABLE rows_ (n INT PRIMARY KEY) ENGINE=InnoDB")
	require.NoError(t, err)
	_, err = db.ExecContext(within(t), "INSERT INTO rows_ VALUES (1)")
	require.NoError(t, err)
	for _, offset := range []time.Duration{time.Hour, -time.Hour} {
		server.SetClock(offset)
		holder, err := db.BeginTx(within(t), nil)
		require.NoError(t, err)
		_, err = holder.ExecContext(within(t), "SELECT n FROM rows_ FOR UPDATE")
		require.NoError(t, err)

		waiter, err := db.Conn(within(t))
		require.NoError(t, err)
		_, err = waiter.ExecContext(within(t), "SET innodb_lock_wait_timeout = 1")
		require.NoError(t, err)
		begun := time.Now()
		_, err = waiter.ExecContext(within(t), "SELECT n FROM rows_ FOR UPDATE")
		require.ErrorContains(t, err, "Lock wait timeout exceeded", "offset %v", offset)
		require.GreaterOrEqual(t, time.Since(begun), 900*time.Millisecond, "offset %v", offset)
		require.NoError(t, waiter.Close())
		require.NoError(t, holder.Rollback())
	}
}

func postgresTime(t *testing.T, addr string) (now time.Time) {
	t.Helper()
	conn, err := pgx.Connect(within(t), testenv.PostgresURL(addr, "postgres"))
	require.NoError(t, err)
	require.NoError(t, conn.QueryRow(within(t), "SELECT clock_timestamp()").Scan(&now))
	require.NoError(t, conn.Close(within(t)))
	return now
}

func mariadbTime(t *testing.T, addr string) time.Time {
	t.Helper()
	var seconds float64
	err := openMariaDB(t, addr, "").QueryRowContext(within(t), "SELECT UNIX_TIMESTAMP(SYSDATE(6))").Scan(&seconds)
	require.NoError(t, err)
	return time.UnixMicro(int64(seconds * 1e6))
}

// requireOffset fails if the server's clock is not this machine's plus offset.
func requireOffset(t *testing.T, client *redis.Client, offset time.Duration) {
	t.Helper()
	const slack = 100 * time.Millisecond // Redis reads its clock now and then
	least := time.Now().Add(offset - slack)
	got, err := client.Time(within(t)).Result()
	require.NoError(t, err)
	require.WithinRange(t, got, least, time.Now().Add(offset+slack))
}
