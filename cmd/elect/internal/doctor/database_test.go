//go:build unix

package doctor_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/cmd/elect/internal/doctor"
	"github.com/electkv/election/cmd/elect/internal/stores"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// A patient is a store whose database the test changes between examinations.
type patient struct {
	*testing.T
	*stores.Store
}

func newPatient(t *testing.T, url string) patient {
	t.Helper()
	address, err := stores.Parse(url, func(string) string { return "" })
	require.NoError(t, err)
	store, err := address.Open()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return patient{t, store}
}

// do carries out a statement.
func (p patient) do(statement string) {
	p.Helper()
	_, err := p.Backend.(*stores.Database).ExecContext(p.Context(), statement)
	require.NoError(p, err, statement)
}

// examine examines a store. If a busy machine did not carry out the round trip in time, it does
// so again: else this is found every time.
func examine(ctx context.Context, s *stores.Store, ttl time.Duration) []stores.Finding {
	for try := 1; ; try++ {
		found := doctor.Examine(ctx, s, ttl)
		failed := slices.ContainsFunc(found, func(f stores.Finding) bool { return f.Subject == "round trip" && f.Level == stores.Fail })
		if !failed || try == 4 {
			return found
		}
	}
}

// ails returns what the doctor finds that is not OK: by subject, what it found.
func (p patient) ails() map[string]string {
	p.Helper()
	ails := make(map[string]string)
	for _, f := range examine(p.Context(), p.Store, 10*time.Minute) {
		require.NotEmpty(p, f.Found, f.Subject)
		if f.Level != stores.OK {
			require.NotEmpty(p, f.Advice, f.Subject)
			require.NotEmpty(p, f.Why, f.Subject)
			ails[f.Subject] = string(f.Level) + " " + f.Found
		}
	}
	return ails
}

const wallClock = "WARN expiry runs on the server's wall clock"

func TestTheDoctorKnowsWhatAPostgreSQLPromises(t *testing.T) {
	server := testenv.StartPostgres(t, "-c", "fsync=on")
	name := testenv.NewPostgresDatabase(t, server.Addr())
	url := testenv.PostgresURL(server.Addr(), name)
	p := newPatient(t, url)
	require.Equal(t, map[string]string{"clock": wallClock}, p.ails())
	require.Empty(t, newPatient(t, url+"&table=observed&expiry=observer").ails())

	bouncer := testenv.StartPgBouncer(t, server.Addr())
	behind := newPatient(t, testenv.PostgresURL(bouncer.Addr(), name)+"&expiry=observer")
	require.Equal(t, map[string]string{
		"changes": "WARN a pooler such as PgBouncer stands between: candidates look for them about once a second",
	}, behind.ails())

	p.do("ALTER TABLE election SET UNLOGGED")
	p.do("ALTER DATABASE " + name + " SET synchronous_commit = off")
	require.Equal(t, map[string]string{
		"clock": wallClock, "synchronous_commit": "WARN off", "table": `WARN "election" is unlogged or temporary`,
	}, newPatient(t, url).ails())
	p.do("ALTER TABLE election SET LOGGED")
	p.do("ALTER TABLE election ENABLE ROW LEVEL SECURITY")
	p.do("ALTER DATABASE " + name + " RESET synchronous_commit")

	standby := testenv.StartPostgresStandby(t, server)
	var ails map[string]string
	require.Eventually(t, func() bool { // it answers before it follows
		ails = newPatient(t, url).ails()
		return ails["standbys"] == "WARN 1, and no commit waits for them"
	}, time.Minute, 50*time.Millisecond)
	require.Equal(t, `WARN "election" has policies or triggers`, ails["table"])
	require.Contains(t, newPatient(t, testenv.PostgresURL(standby.Addr(), name)).ails()["round trip"], "standby")

	p.do("ALTER SYSTEM SET synchronous_standby_names = '*'")
	p.do("SELECT pg_reload_conf()")
	require.Eventually(t, func() bool {
		_, ails := newPatient(t, url).ails()["standbys"]
		return !ails
	}, time.Minute, 50*time.Millisecond, "commits wait for the standby")
	p.do("ALTER DATABASE " + name + " SET synchronous_commit = local")
	require.Equal(t, "WARN 1, and no commit waits for them", newPatient(t, url).ails()["standbys"], "they need not")
	p.do("ALTER DATABASE " + name + " RESET synchronous_commit")
	p.do("ALTER SYSTEM RESET synchronous_standby_names") // it ends before the primary
	p.do("SELECT pg_reload_conf()")

	p.do("ALTER TABLE election DISABLE ROW LEVEL SECURITY, DROP CONSTRAINT election_name_token_key")
	require.Contains(t, p.ails()["table"], "FAIL sqlkv: ")
	require.Contains(t, p.ails()["table"], `mend it by: ALTER TABLE "election" ADD UNIQUE (name, token)`)
	require.Contains(t, newPatient(t, url).ails()["round trip"], "UNIQUE (name, token)", "who comes now is refused")
	p.do("ALTER TABLE election ADD UNIQUE (name, token)")
	require.NotContains(t, newPatient(t, url).ails(), "table")

	p.do("ALTER TABLE election DROP COLUMN note")
	require.Contains(t, newPatient(t, url).ails()["round trip"], "FAIL")
}

func TestTheDoctorKnowsWhatAMariaDBPromises(t *testing.T) {
	server := testenv.StartMariaDB(t)
	url := "mysql://" + testenv.MySQLUser + "@" + server.Addr() + "/" + testenv.NewMySQLDatabase(t, server.Addr())
	p := newPatient(t, url)
	require.Equal(t, map[string]string{"clock": wallClock}, p.ails())
	require.Empty(t, newPatient(t, url+"?table=observed&expiry=observer").ails())

	p.do("ALTER TABLE election ENGINE = Aria")
	p.do("SET GLOBAL innodb_flush_log_at_trx_commit = 2")
	ails := p.ails()
	require.Contains(t, ails["table"], "ENGINE = InnoDB")
	delete(ails, "table")
	require.Equal(t, map[string]string{
		"clock": wallClock, "engine": "WARN Aria", "innodb_flush_log_at_trx_commit": "WARN 2",
	}, ails)

	p.do("ALTER TABLE election ENGINE = InnoDB")
	p.do("SET GLOBAL read_only = ON")
	require.Contains(t, newPatient(t, url).ails()["round trip"], "read only")
}

func TestTheDoctorKnowsWhatAnSQLitePromises(t *testing.T) {
	url := "sqlite://" + t.TempDir() + "/a%20database%3F"
	p := newPatient(t, url)
	require.Empty(t, p.ails())
	p.do("PRAGMA journal_mode = WAL")
	require.Empty(t, p.ails())
}

// What one judge of expiry wrote, candidates of the other leave alone.
func TestTheDoctorSaysThatANameIsOfTheOtherExpiry(t *testing.T) {
	url := "sqlite://" + filepath.Join(t.TempDir(), "database")
	ours, theirs := newPatient(t, url), newPatient(t, url+"?expiry=observer")
	_, err := theirs.KV.Create(t.Context(), "name", kv.Record{Signature: "s", TTL: time.Minute})
	require.NoError(t, err)
	found := doctor.ExamineName(t.Context(), ours.Store, "name")
	require.Len(t, found, 1)
	require.Equal(t, stores.Fail, found[0].Level)
	require.Contains(t, found[0].Advice, "expiry=")

	found = doctor.ExamineName(t.Context(), theirs.Store, "name")
	require.Len(t, found, 1)
	require.Equal(t, stores.Finding{Level: stores.OK, Subject: "name name", Found: "somebody leads"}, found[0])
}

func TestForgetLeavesWhatSomebodyHolds(t *testing.T) {
	p := newPatient(t, "sqlite://"+filepath.Join(t.TempDir(), "database"))
	rec, err := p.KV.Create(t.Context(), "name", kv.Record{Signature: "s", TTL: time.Minute})
	require.NoError(t, err)
	require.NoError(t, p.Forget("name"))
	rec, err = p.KV.Refresh(t.Context(), "name", rec)
	require.NoError(t, err)
	require.NoError(t, p.KV.Delete(t.Context(), "name", rec))
	require.NoError(t, p.Forget("name"))
	require.Zero(t, rows(t, p))
}

// It is in its row until another takes its place.
func TestForgetRemovesARecordThatHasExpired(t *testing.T) {
	p := newPatient(t, "sqlite://"+filepath.Join(t.TempDir(), "database"))
	_, err := p.KV.Create(t.Context(), "name", kv.Record{Signature: "s", TTL: 100 * time.Millisecond})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := p.KV.Get(t.Context(), "name")
		return errors.Is(err, kv.ErrVacant)
	}, 10*time.Second, 20*time.Millisecond)
	require.Equal(t, 1, rows(t, p))
	require.NoError(t, p.Forget("name"))
	require.Zero(t, rows(t, p))
}

func rows(t *testing.T, p patient) (all int) {
	t.Helper()
	require.NoError(t, p.Backend.(*stores.Database).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM election").Scan(&all))
	return all
}
