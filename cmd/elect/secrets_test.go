//go:build unix

package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

// startWith starts elect with more in its environment.
func startWith(t *testing.T, env []string, args ...string) *proc {
	t.Helper()
	cmd := exec.Command(elect, args...)
	cmd.Env = append(os.Environ(), env...)
	return startCommand(t, cmd)
}

func TestTheCommandDoesNotGetTheStoresSecrets(t *testing.T) {
	t.Parallel()
	redis := testenv.StartRedis(t, "--requirepass", "hunter2").Addr()
	secrets := []string{"ELECT_STORE=redis://" + redis, "REDISCLI_AUTH=hunter2", "REDISCLI_SENTINEL_AUTH=hunter3"}
	env := append([]string{"PGPASSWORD=of-another-store", "ELECT_STORE_DIR=x"}, secrets...)

	e := startWith(t, env, "run", "job", "--", "env")
	require.Zero(t, e.status(t))
	seen := strings.Split(e.out.String(), "\n")
	for _, secret := range secrets {
		require.NotContains(t, seen, secret)
	}
	require.NotContains(t, e.out.String(), "hunter")
	require.Contains(t, seen, "PGPASSWORD=of-another-store")
	require.Contains(t, seen, "ELECT_STORE_DIR=x")
	require.Contains(t, seen, "ELECTION_NAME=job")

	e = startWith(t, env, "run", "--pass-store", "job", "--", "env")
	require.Zero(t, e.status(t))
	require.Subset(t, strings.Split(e.out.String(), "\n"), env)
}

func TestAnElectUnderElectRunDoesNotTakeAnotherStoreUnasked(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	env := []string{"ELECT_STORE=" + p.store, "XDG_RUNTIME_DIR=" + t.TempDir(), "XDG_STATE_HOME=" + t.TempDir()}
	e := startWith(t, env, "run", "job", "--", elect, "status", "job")
	require.Equal(t, 125, e.status(t))
	require.Empty(t, e.out.String())
	require.Contains(t, e.err.String(), "elect: this runs under elect run, which keeps the URL of its store to itself: name a store with --store, or start that elect run with --pass-store\n")

	e = startWith(t, env, "run", "--pass-store", "job", "--", elect, "status", "job")
	require.Zero(t, e.status(t))
	require.Contains(t, e.out.String(), "leader")

	e = startWith(t, env, "run", "job", "--", elect, "status", "--store", p.store, "job")
	require.Zero(t, e.status(t))
}

func TestASecretOnTheCommandLineIsWarnedOf(t *testing.T) {
	t.Parallel()
	redis := testenv.StartRedis(t, "--requirepass", "hunter2").Addr()
	const warning = ` warn: --store shows a secret to everybody on this host (ps): put it into the environment use="ELECT_STORE, REDISCLI_AUTH"` + "\n"
	e := start(t, "run", "--store", "redis://:hunter2@"+redis, "job", "--", "true")
	require.Zero(t, e.status(t))
	require.Contains(t, e.err.String(), warning)
	require.NotContains(t, e.err.String(), "hunter2")
	w := start(t, "watch", "--store", "redis://:hunter2@"+redis, "job")
	w.says(t, warning)

	for _, env := range [][]string{{"ELECT_STORE=redis://:hunter2@" + redis}, {"ELECT_STORE=redis://" + redis, "REDISCLI_AUTH=hunter2"}} {
		e := startWith(t, env, "run", "job", "--", "true")
		require.Zero(t, e.status(t))
		require.NotContains(t, e.err.String(), "warn")
	}
}
