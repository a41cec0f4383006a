//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/cmd/elect/internal/stores"
	"github.com/electkv/election/internal/testenv"
)

// everyServer returns the URL of each kind of server by its address.
func everyServer(t *testing.T) map[string]string {
	t.Helper()
	etcd, consul, redis := testenv.Etcd(t), testenv.Consul(t), testenv.Redis(t)
	postgres, mariadb, users := testenv.Postgres(t), testenv.MariaDB(t), testenv.StartEtcdWithAuth(t).Addr()
	return map[string]string{
		etcd:     "etcd://" + etcd + "/elect-wait",
		consul:   "consul://" + consul + "/elect-wait?min-ttl=1s",
		redis:    "redis://" + redis + "/0?prefix=elect-wait:",
		postgres: testenv.PostgresURL(postgres, testenv.NewPostgresDatabase(t, postgres)),
		mariadb:  "mysql://" + testenv.MySQLUser + "@" + mariadb + "/" + testenv.NewMySQLDatabase(t, mariadb),
		users:    "etcd://" + testenv.EtcdUser + ":" + testenv.EtcdUserPassword + "@" + users,
	}
}

func TestRunWaitsForAStoreThatIsDownWhenItStarts(t *testing.T) {
	for addr, url := range everyServer(t) {
		kind, _, _ := strings.Cut(url, ":")
		t.Run(kind, func(t *testing.T) {
			t.Parallel() // mostly it waits
			proxy := testenv.NewProxy(t, addr)
			proxy.Cut()
			e := start(t, "run", "--store", strings.Replace(url, addr, proxy.Addr(), 1), "job", "--", "echo", "led")
			e.says(t, ` warn: waiting for the store error="store `+kind)
			require.Contains(t, e.err.String(), "connection refused")
			require.NotContains(t, e.err.String(), testenv.EtcdUserPassword)
			proxy.Heal()
			require.Zero(t, e.status(t))
			require.Equal(t, "led\n", e.out.String())
			require.Contains(t, e.err.String(), " the store can be used store=")
		})
	}
}

func TestRunSaysWhatItWaitsForWhileNobodyAnswers(t *testing.T) {
	for addr, url := range everyServer(t) {
		kind, _, _ := strings.Cut(url, ":")
		t.Run(kind, func(t *testing.T) {
			t.Parallel() // mostly it waits
			proxy := testenv.NewProxy(t, addr)
			proxy.BlackHole()
			e := start(t, "run", "--store", strings.Replace(url, addr, proxy.Addr(), 1), "job", "--", "true")
			e.says(t, " waiting for the store to answer store="+kind+"://"+proxy.Addr())
			e.send(t, syscall.SIGTERM)
			told := time.Now()
			require.Equal(t, 143, e.status(t))
			require.Less(t, time.Since(told), 30*time.Second, "it waits for nobody any more")
			require.NotContains(t, e.err.String(), "elect: store", "a signal is no error")
		})
	}
}

func TestRunEndsTheWaitForAStoreOnASignal(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
		e := start(t, "run", "--store", "redis://127.0.0.1:1", "job", "--", "true")
		e.says(t, "waiting for the store")
		e.send(t, sig)
		require.Equal(t, 128+int(sig), e.status(t))
		require.NotContains(t, e.err.String(), "elect: store", "a signal is no error")
	}
}

func TestRunWaitsForAStoreOnlyAsLongAsItWasTold(t *testing.T) {
	const refused = "connect: connection refused"
	for _, url := range []string{"redis://127.0.0.1:1", "etcd://127.0.0.1:1", "etcd://u:p@127.0.0.1:1"} {
		t.Run(url, func(t *testing.T) {
			t.Parallel() // mostly it waits
			status, stdout, stderr := finish(t, "run", "--store", url, "--wait", "0", "job", "--", "echo", "led")
			require.Equal(t, 125, status)
			require.Empty(t, stdout)
			require.Equal(t, 1, strings.Count(withoutWarning(stderr), "\n"), stderr)
			require.Contains(t, stderr, refused)

			began := time.Now()
			status, stdout, stderr = finish(t, "run", "--store", url, "--wait", "2s", "job", "--", "echo", "led")
			require.GreaterOrEqual(t, time.Since(began), 2*time.Second)
			require.Equal(t, 125, status)
			require.Empty(t, stdout)
			require.Contains(t, stderr, "waiting for the store")
			last := stderr[strings.LastIndexByte(strings.TrimSuffix(stderr, "\n"), '\n')+1:]
			require.Contains(t, last, refused)
			require.True(t, strings.HasSuffix(last, "; --wait 2s is over\n"), last)
		})
	}
}

func TestRunDoesNotWaitForWhatWillNotChange(t *testing.T) {
	etcd, users := testenv.Etcd(t), testenv.StartEtcdWithAuth(t).Addr()
	consul := testenv.StartConsulWithACL(t).Addr()
	redis := testenv.StartRedis(t, "--requirepass", "right").Addr()
	postgres, mariadb := testenv.Postgres(t), testenv.MariaDB(t)
	plain := filepath.Join(t.TempDir(), "plain")
	require.NoError(t, os.WriteFile(plain, []byte("text"), 0o600))
	for what, args := range map[string][]string{
		"no Consul":              {"--store", "consul://" + etcd},
		"wrong password, etcd":   {"--store", "etcd://" + testenv.EtcdUser + ":wrong@" + users},
		"no user, etcd":          {"--store", "etcd://" + users},
		"wrong token, Consul":    {"--store", "consul://5eb1a7c2-0d3f-4a57-9a86-000000000000@" + consul},
		"no token, Consul":       {"--store", "consul://" + consul},
		"wrong password, Redis":  {"--store", "redis://:wrong@" + redis},
		"no password, Redis":     {"--store", "redis://" + redis},
		"no such database":       {"--store", testenv.PostgresURL(postgres, "nothing")},
		"no such user, Postgres": {"--store", strings.Replace(testenv.PostgresURL(postgres, "postgres"), "postgres@", "nobody@", 1)},
		"wrong password, MySQL":  {"--store", "mysql://" + testenv.MySQLUser + ":wrong@" + mariadb + "/mysql"},
		"no such schema, MySQL":  {"--store", "mysql://" + testenv.MySQLUser + "@" + mariadb + "/nothing"},
		"no folder, SQLite":      {"--store", "sqlite:///no/such/folder/file"},
		"no directory":           {"--store", "file://" + plain},
		"a TTL, and no server":   {"--store", "consul://127.0.0.1:1", "--ttl", "5s"},
		"a margin, and no host":  {"--store", "redis://127.0.0.1:1", "--ttl", "5s", "--grace", "5s"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			status, stdout, stderr := finish(t, append(append([]string{"run"}, args...), "job", "--", "echo", "led")...)
			require.Equal(t, 125, status)
			require.Empty(t, stdout)
			require.Equal(t, 1, strings.Count(withoutWarning(stderr), "\n"), stderr)
			require.NotContains(t, stderr, ":wrong@")
		})
	}
}

// withoutWarning returns standard error without the line that warns of a password, and
// those that a busy machine may have caused: the first answer of the store comes late.
func withoutWarning(stderr string) string {
	kept := ""
	for line := range strings.Lines(stderr) {
		switch {
		case strings.Contains(line, " warn: --store shows "):
		case strings.Contains(line, " waiting for the store to answer "):
		case strings.Contains(line, " warn: waiting for the store error=") && strings.Contains(line, "deadline exceeded"):
		default:
			kept += line
		}
	}
	return kept
}

func TestAStoreThatIsWaitedForIsToldOfAtABoundedRate(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(try int) error{
		"the same":      func(int) error { return errors.New("down") },
		"another again": func(try int) error { return fmt.Errorf("port %d is closed", try) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				address, err := stores.Parse("mem:", os.Getenv)
				require.NoError(t, err)
				p := &patience{address: address, log: slog.New(newLineHandler(&out, slog.LevelInfo)), began: time.Now(), most: 10 * time.Minute}
				tries := 0
				err = p.wait(t.Context(), func(error) bool { return true }, func(time.Duration) error {
					tries++
					return of(tries)
				})
				require.ErrorContains(t, err, "; --wait 10m0s is over")
				require.Equal(t, 10*time.Minute, time.Since(p.began))
				require.InDelta(t, 600/mostPause.Seconds(), tries, 10)
				lines := strings.Count(out.String(), "\n")
				if name == "the same" {
					require.InDelta(t, 10, lines, 1)
				} else {
					require.InDelta(t, 60, lines, 2) // once in 10 s
				}
			})
		})
	}
}
