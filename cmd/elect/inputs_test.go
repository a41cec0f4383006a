//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBadInputIsOneLineThatSaysWhatIsWrongAndWhatWouldBeRight(t *testing.T) {
	const (
		usage  = "use elect run [flags] NAME -- COMMAND [ARG...]\n"
		stores = "use mem:, file:///directory, etcd://host:port[,host:port...]/prefix, consul://host:port/prefix, redis://host:port/database (TLS: etcds, consuls, rediss)\n"
	)
	file := "file://" + t.TempDir()
	plain := filepath.Join(t.TempDir(), "plain")
	require.NoError(t, os.WriteFile(plain, []byte("text"), 0o600))
	for _, c := range []struct {
		args   string
		status int
		want   string
	}{
		{"run", 125, "elect: no NAME; " + usage},
		{"run -- true", 125, "elect: no NAME; " + usage},
		{"run x", 125, "elect: no COMMAND; " + usage},
		{"run x --", 125, "elect: no COMMAND; " + usage},
		{"run x true --all", 125, "elect: unknown flag: --all; flags of COMMAND come after --\n"},
		{"run x true -n", 125, "elect: unknown shorthand flag: 'n' in -n; flags of COMMAND come after --\n"},
		{"demo --ttl 1ms", 125, "elect: TTL 1ms is too short for margin 51ms: leadership could be trusted for 0s only; use a TTL of at least 100ms\n"},
		{"run x true", 125, "elect: no -- before COMMAND; " + usage},
		{"run x y -- true", 125, `elect: more than one NAME: ["x" "y"]; ` + usage},
		{"run x -- elect-test-no-such-command", 127, "elect: elect-test-no-such-command: command not found\n"},
		{"run x -- /no/such/command", 127, "elect: /no/such/command: command not found\n"},
		{"run x -- " + plain, 126, "elect: " + plain + ": cannot be executed: permission denied\n"},
		{"run x -- /", 126, "elect: /: cannot be executed: is a directory\n"},
		{"run --ttl 0s x -- true", 125, "elect: --ttl 0s is not positive\n"},
		{"run --grace -1s x -- true", 125, "elect: --grace -1s is negative\n"},
		{"run --grace 14s x -- true", 125, "elect: --grace 14s does not fit --ttl 15s: COMMAND must be dead before another can lead; use --grace 8.5s or less, or --ttl 24.8s or more\n"},
		{"run --ttl 100ms x -- true", 125, "elect: --grace 5s does not fit --ttl 100ms: COMMAND must be dead before another can lead; use --ttl 8.9s or more\n"},
		{"run --ttl 1y x -- true", 125, `elect: invalid argument "1y" for "--ttl" flag: time: unknown unit "y" in duration "1y"` + "\n"},
		{"run --log-level loud x -- true", 125, `elect: --log-level "loud": use debug, info, warn or error` + "\n"},
		{"run --store zk://h x -- true", 125, `elect: store zk:...: unknown scheme "zk"; ` + stores},
		{"run --store redis://u:secret@h:x x -- true", 125, "elect: store redis:...: host 1 has a port that is not a number from 1 to 65535; use redis://host:port/database (several hosts with ?master=name or ?cluster=true), parameters cacert cert key servername insecure-skip-verify master cluster sentinel-user prefix quarantine\n"},
		{"run --store file:///proc/nothing x -- true", 125, ""},
		{"run --store consul://127.0.0.1:1 --ttl 5s --grace 1s x -- true", 125, ""},
		{"run --store etcd://127.0.0.1:1 --ttl 500ms --grace 10ms x -- true", 125, ""},
		{"run --store redis://u:secret@127.0.0.1:1 x -- true", 125, "elect: store redis://127.0.0.1:1 cannot be used: rediskv: get \"x\": dial tcp 127.0.0.1:1: connect: connection refused\n"},
		{"run --store " + file + " --id a\nb x -- true", 125, `elect: ID "a\nb" contains control characters` + "\n"},
		{"watch", 125, "elect: no NAME; use elect watch [flags] NAME\n"},
		{"watch x y", 125, `elect: more than one NAME: ["x" "y"]; use elect watch [flags] NAME` + "\n"},
		{"watch -o yaml x", 125, `elect: invalid argument "yaml" for "-o, --output" flag: use text or json` + "\n"},
		{"watch --store consul://127.0.0.1:1 x", 125, ""},
		{"status", 125, "elect: no NAME; use elect status [flags] NAME...\n"},
		{"status --nonsense x", 125, "elect: unknown flag: --nonsense\n"},
		{"demo --store mem:", 125, "elect: store mem: is for one process, and the demo has three; use file:///directory\n"},
		{"demo --ttl -1s --store " + file, 125, ""},
		{"resign x", 125, `elect: unknown command "resign" for "elect"` + "\n"},
	} {
		t.Run(c.args, func(t *testing.T) {
			status, stdout, stderr := finish(t, strings.Split(c.args, " ")...)
			require.Equal(t, c.status, status)
			require.Empty(t, stdout)
			require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
			require.True(t, strings.HasPrefix(stderr, "elect: "), stderr)
			require.NotContains(t, stderr, "secret")
			if c.want != "" {
				require.Equal(t, c.want, stderr)
			}
		})
	}
}

func TestAnEmptyNameIsRefused(t *testing.T) {
	for _, args := range [][]string{{"status", ""}, {"watch", ""}, {"run", "", "--", "true"}} {
		status, _, stderr := finish(t, args...)
		require.Equal(t, 125, status)
		require.Contains(t, stderr, "is empty")
	}
}

func TestTheStoreComesFromTheEnvironmentUnlessAFlagSaysOtherwise(t *testing.T) {
	cmd := exec.Command(elect, "status", "x")
	cmd.Env = append(os.Environ(), "ELECT_STORE=zk://h")
	p := startCommand(t, cmd)
	require.Equal(t, 125, p.status(t))
	require.Contains(t, p.err.String(), `unknown scheme "zk"`)

	cmd = exec.Command(elect, "status", "--store", "mem:", "x")
	cmd.Env = append(os.Environ(), "ELECT_STORE=zk://h")
	require.Equal(t, 1, startCommand(t, cmd).status(t))
}

func TestTheDefaultStoreNeedsNoServer(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(elect, "run", "x", "--", "true")
	cmd.Env = append(os.Environ(), "ELECT_STORE=", "XDG_RUNTIME_DIR="+dir)
	require.Zero(t, startCommand(t, cmd).status(t))
	require.DirExists(t, filepath.Join(dir, "elect"))
}

func TestShellsCompleteStoresAndFormats(t *testing.T) {
	for args, want := range map[string]string{
		"status --store ":  "mem:\nfile:///\netcd://\netcds://\nconsul://\nconsuls://\nredis://\nrediss://\n:6\n",
		"watch -o ":        "text\njson\n:4\n",
		"run --log-level ": "debug\ninfo\nwarn\nerror\n:4\n",
	} {
		status, stdout, _ := finish(t, append([]string{"__complete"}, strings.Split(args, " ")...)...)
		require.Zero(t, status)
		require.Equal(t, want, stdout)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		status, stdout, _ := finish(t, "completion", shell)
		require.Zero(t, status)
		require.Contains(t, stdout, "elect")
	}
}

func TestVersionNamesTheProgramAndGo(t *testing.T) {
	status, stdout, _ := finish(t, "version")
	require.Zero(t, status)
	require.Regexp(t, `^elect \S+ go\S+ \w+/\w+\n$`, stdout)
}
