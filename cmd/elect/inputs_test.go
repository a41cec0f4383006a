//go:build unix

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

func TestBadInputIsOneLineThatSaysWhatIsWrongAndWhatWouldBeRight(t *testing.T) {
	t.Parallel()
	const (
		usage  = "use elect run [flags] NAME -- COMMAND [ARG...]\n"
		stores = "use mem:, file:///directory, etcd://host:port[,host:port...]/prefix, consul://host:port/prefix, redis://host:port/database, sqlite:///file, postgres://user@host:port/database, mysql://user@host:port/database, paxos://host:port?peers=host:port,host:port&cluster=name (TLS: etcds, consuls, rediss)\n"
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
		{"run --http 127.0.0.1:0 x --", 125, "elect: no COMMAND; " + usage},
		{"run --http 127.0.0.1:0 --on-lost true x", 125, "elect: --on-lost stops what COMMAND started, and there is no COMMAND: leave it out\n"},
		{"run --http-token-file " + plain + " x -- true", 125, "elect: --http-token-file has no effect without --http: add that, or leave it out\n"},
		{"run x true --all", 125, "elect: unknown flag: --all; flags of COMMAND come after --\n"},
		{"run x true -n", 125, "elect: unknown shorthand flag: 'n' in -n; flags of COMMAND come after --\n"},
		{"demo --ttl 1ms", 125, "elect: TTL 1ms is too short for margin 51ms: leadership could be trusted for 0s only; use a TTL of at least 90ms\n"},
		{"run x true", 125, "elect: no -- before COMMAND; " + usage},
		{"run x y -- true", 125, `elect: more than one NAME: ["x" "y"]; ` + usage},
		{"run x -- elect-test-no-such-command", 127, "elect: elect-test-no-such-command: command not found\n"},
		{"run x -- /no/such/command", 127, "elect: /no/such/command: command not found\n"},
		{"run x -- " + plain, 126, "elect: " + plain + ": cannot be executed: permission denied\n"},
		{"run x -- /", 126, "elect: /: cannot be executed: is a directory\n"},
		{"run --ttl 0s x -- true", 125, "elect: --ttl 0s is not positive\n"},
		{"run --grace -1s x -- true", 125, "elect: --grace -1s is negative\n"},
		{"run --grace 14s --ttl 15s x -- true", 125, "elect: --grace 14s does not fit --ttl 15s: COMMAND must be dead before another can lead; use --grace 8.5s or less, or --ttl 24.8s or more\n"},
		{"run --grace 5s --ttl 1s --store consul://127.0.0.1:1 x -- true", 125, "elect: --grace 5s does not fit --ttl 1s: COMMAND must be dead before another can lead; use --grace 440ms or less, or --ttl 10s or more\n"},
		{"run --ttl 100ms x -- true", 125, "elect: --ttl 100ms is too short: COMMAND must be dead before another can lead; use --ttl 400ms or more\n"},
		{"run --wait -1s x -- true", 125, "elect: --wait -1s is negative: leave it out to wait for as long as it takes\n"},
		{"run --ttl 1y x -- true", 125, `elect: --ttl "1y" is not a duration, such as 1m30s or 500ms` + "\n"},
		{"resign --timeout 30 x", 125, `elect: --timeout "30" is not a duration, such as 1m30s or 500ms` + "\n"},
		{"run --log-level loud x -- true", 125, `elect: --log-level "loud": use debug, info, warn or error` + "\n"},
		{"run --store zk://h x -- true", 125, `elect: store zk:...: unknown scheme "zk"; ` + stores},
		{"run --store redis://u:secret@h:x x -- true", 125, "elect: store redis:...: host 1 has a port that is not a number from 1 to 65535; use redis://host:port/database (several hosts with ?master=name or ?cluster=true), parameters cacert cert key servername insecure-skip-verify master cluster sentinel-user prefix quarantine plain expiry\n"},
		{"run --store file:///proc/nothing x -- true", 125, ""},
		{"run --store consul://127.0.0.1:1 --ttl 5s --grace 1s x -- true", 125, ""},
		{"run --store etcd://127.0.0.1:1 --wait 0 --ttl 500ms --grace 10ms x -- true", 125, ""},
		{"run --store redis://u:secret@127.0.0.1:1 --wait 0 x -- true", 125, "elect: store redis://127.0.0.1:1 cannot be used: rediskv: get \"x\": dial tcp 127.0.0.1:1: connect: connection refused\n"},
		{"run --store " + file + " --id a\nb x -- true", 125, `elect: ID "a\nb" contains control characters` + "\n"},
		{"watch", 125, "elect: no NAME; use elect watch [flags] NAME\n"},
		{"watch x y", 125, `elect: more than one NAME: ["x" "y"]; use elect watch [flags] NAME` + "\n"},
		{"watch -o yaml x", 125, `elect: invalid argument "yaml" for "-o, --output" flag: use text or json` + "\n"},
		{"watch --store consul://127.0.0.1:1 x", 125, ""},
		{"status x:heir", 125, `elect: NAME "x:heir" is reserved for the heir of "x": name the election itself` + "\n"},
		{"watch x:request", 125, `elect: NAME "x:request" is reserved for requests to the leader of "x": name the election itself` + "\n"},
		{"status", 125, "elect: no NAME; use elect status [flags] NAME...\n"},
		{"doctor --store mem: -o yaml x", 125, `elect: invalid argument "yaml" for "-o, --output" flag: use text or json` + "\n"},
		{"status --store etcd://h?layout=line x", 125, `elect: store etcd:...: parameter "layout" is none of key, queue and claim; use etcd://host:port[,host:port...]/prefix, parameters cacert cert key servername insecure-skip-verify layout suffix plain expiry` + "\n"},
		{"run --store consul://h?plain=verbatim x -- true", 125, `elect: store consul:...: parameter "plain" is neither true nor false; use consul://host:port/prefix, parameters cacert cert key servername insecure-skip-verify dc namespace partition min-ttl plain expiry` + "\n"},
		{"status --nonsense x", 125, "elect: unknown flag: --nonsense\n"},
		{"demo --store mem:", 125, "elect: store mem: is for one process, and the demo has three; use file:///directory\n"},
		{"demo --store paxos://a:1?peers=a:1&cluster=x&cert=c&key=k&cacert=c", 125, ""},
		{"status --store paxos://a:1?peers=a:1&cluster=x x", 125, "elect: store paxos:...: members prove to each other who they are: name cert, key and cacert, or set ELECT_CERT, ELECT_KEY and ELECT_CACERT; elect peers init makes them; use paxos://host:port?peers=host:port,host:port&cluster=name, parameters peers cluster cacert cert key dir founding listen max-ttl round drift\n"},
		{"status --store postgres://h/d?target_session_attrs=writable x", 125, `elect: store postgres:...: parameter "target_session_attrs" is none of any, read-write, primary, read-only, standby, prefer-standby; use postgres://user@host:port/database, parameters sslmode sslrootcert sslcert sslkey target_session_attrs application_name default_query_exec_mode schema table expiry` + "\n"},
		{"demo --ttl -1s --store " + file, 125, ""},
		{"demo bully", 125, `elect: unknown ORDER "bully"; use first, rank, ring, list, groups, or leave it out` + "\n"},
		{"demo rank ring", 125, `elect: more than one ORDER: ["rank" "ring"]; use elect demo [flags] [ORDER]` + "\n"},
		{"demo groups --store " + file, 125, "elect: --store has no effect: groups need no store; leave it out, or use elect demo --store URL for an election\n"},
		{"demo groups --ttl 3s", 125, "elect: --ttl is for elections; leave it out, or use elect demo without groups\n"},
		{"demo --serve groups", 125, "elect: --serve is for elections; leave it out, or use elect demo without groups\n"},
		{"demo groups --log-leve debug", 125, "elect: unknown flag: --log-leve; did you mean --log-level?\n"},
		{"demo groups rank", 125, `elect: elect demo groups takes nothing more: ["rank"]; the ORDER of an election comes after elect demo` + "\n"},
		{"__member x", 125, "elect: a member is started by elect demo groups only\n"},
		{"status --outptu json x", 125, "elect: unknown flag: --outptu; did you mean --output?\n"},
		{"resign --time 3s x", 125, "elect: unknown flag: --time; did you mean --timeout?\n"},
		{"run --grase 1s x -- true", 125, "elect: unknown flag: --grase; did you mean --grace?; flags of COMMAND come after --\n"},
		{"run --log-format xml x -- true", 125, `elect: invalid argument "xml" for "--log-format" flag: use text or json` + "\n"},
		{"stauts x", 125, `elect: unknown command "stauts" for "elect"; did you mean status?` + "\n"},
		{"stauts -o json x", 125, `elect: unknown command "stauts" for "elect"; did you mean status?` + "\n"},
		{"trans x --to y", 125, `elect: unknown command "trans" for "elect"; did you mean transfer?` + "\n"},
		{"abdicate x", 125, `elect: unknown command "abdicate" for "elect"` + "\n"},
		{"run --succession bully x -- true", 125, `elect: invalid argument "bully" for "--succession" flag: use none, first, rank, ring or list` + "\n"},
		{"run --rank -1 --succession rank x -- true", 125, "elect: --rank -1 is below zero; use elect watch for a process that never leads\n"},
		{"run --rank 5 x -- true", 125, "elect: --rank 5 has no effect without --succession rank: add that, or leave it out\n"},
		{"run --rank 5 --succession ring x -- true", 125, "elect: --rank 5 has no effect without --succession rank: add that, or leave it out\n"},
		{"run --heirs a,b x -- true", 125, "elect: --heirs has no effect without --succession list: add that, or leave it out\n"},
		{"run --heirs a --succession rank x -- true", 125, "elect: --heirs has no effect without --succession list: add that, or leave it out\n"},
		{"run --heirs a,,b --succession list x -- true", 125, "elect: --heirs has an empty id in it; use --heirs a,b,c\n"},
		{"run --heirs a,b,a --succession list --store " + file + " x -- true", 125, `elect: heir "a" is listed twice: its first place is the one that counts` + "\n"},
		{"run --succession list --store " + file + " --heirs=b,\tb x -- true", 125, `elect: heir "b" is listed twice: its first place is the one that counts` + "\n"},
		{"run --stability 1m --succession none x -- true", 125, "elect: --stability has no effect with --succession none: use first, rank, ring or list\n"},
		{"run --stability -1m --succession rank x -- true", 125, "elect: --stability -1m0s is negative\n"},
		{"run --max-term 1m --succession none x -- true", 125, "elect: --max-term needs an heir to hand over to: use it with --succession first, rank, ring or list\n"},
		{"run --max-term 5s --succession ring x -- true", 125, "elect: --max-term 5s is shorter than --ttl 15s: use --max-term 15s or more\n"},
		{"run --max-term -5s --succession ring x -- true", 125, "elect: --max-term -5s is negative\n"},
		{"run --store " + file + " x:heir -- true", 125, `elect: name "x:heir" ends with ":heir", which is reserved for the records beside an election: use another name` + "\n"},
		{"resign", 125, "elect: no NAME; use elect resign [flags] NAME\n"},
		{"resign x y", 125, `elect: more than one NAME: ["x" "y"]; use elect resign [flags] NAME` + "\n"},
		{"resign --timeout 0s x", 125, "elect: --timeout 0s is not positive\n"},
		{"resign x:request", 125, `elect: NAME "x:request" is reserved for requests to the leader of "x": name the election itself` + "\n"},
		{"resign --store redis://u:secret@127.0.0.1:1 x", 125, "elect: store redis://127.0.0.1:1 cannot be used: rediskv: get \"x\": dial tcp 127.0.0.1:1: connect: connection refused\n"},
		{"resign --store mem: x", 1, "elect: nobody leads x: there is nobody to ask\n"},
		{"transfer --to a", 125, "elect: no NAME; use elect transfer [flags] NAME --to ID\n"},
		{"transfer x", 125, "elect: no ID to hand over to; use elect transfer [flags] NAME --to ID\n"},
		{"transfer --to= x", 125, "elect: no ID to hand over to; use elect transfer [flags] NAME --to ID\n"},
		{"transfer x:heir --to a", 125, `elect: NAME "x:heir" is reserved for the heir of "x": name the election itself` + "\n"},
		{"transfer --store mem: x --to a", 1, "elect: nobody leads x: there is nobody to ask\n"},
		{"transfer --store mem: x --to a\nb", 125, `elect: ID "a\nb" contains control characters` + "\n"},
	} {
		t.Run(c.args, func(t *testing.T) {
			status, stdout, stderr := finish(t, strings.Split(c.args, " ")...)
			require.Equal(t, c.status, status)
			require.Empty(t, stdout)
			require.NotContains(t, stderr, ":secret")
			stderr = withoutWarning(stderr)
			require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
			require.True(t, strings.HasPrefix(stderr, "elect: "), stderr)
			if c.want != "" {
				require.Equal(t, c.want, stderr)
			}
		})
	}
}

func TestWhatIsNotTheStoreOfTheURLIsSaid(t *testing.T) {
	etcd := testenv.Etcd(t)
	for url, want := range map[string]string{
		"etcd://127.0.0.1:1": "dial tcp 127.0.0.1:1: connect: connection refused",
		"etcds://" + etcd:    "etcd is at " + etcd + " without TLS: use etcd://",
		"consul://" + etcd:   "the server there is not Consul",
	} {
		t.Run(url, func(t *testing.T) {
			t.Parallel() // mostly it waits
			named(t, url, want)
			stdout := ""
			for range 5 { // as in named
				var status int
				status, stdout, _ = finish(t, "doctor", "--store", url)
				require.Equal(t, 1, status)
				require.Contains(t, stdout, "FAIL")
				if strings.Contains(stdout, want) || !strings.HasPrefix(url, "etcd") {
					return
				}
			}
			require.Contains(t, stdout, want)
		})
	}
}

func TestAnEmptyNameIsRefused(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"status", ""}, {"watch", ""}, {"doctor", "--store", "mem:", "x", ""}, {"run", "", "--", "true"}, {"resign", ""}, {"transfer", "", "--to", "x"}} {
		status, _, stderr := finish(t, args...)
		require.Equal(t, 125, status)
		require.Contains(t, stderr, "is empty")
	}
}

func TestTheStoreComesFromTheEnvironmentUnlessAFlagSaysOtherwise(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.Command(elect, "run", "x", "--", "true")
	cmd.Env = append(os.Environ(), "ELECT_STORE=", "XDG_STATE_HOME="+dir)
	p := startCommand(t, cmd)
	require.Zero(t, p.status(t))
	require.DirExists(t, filepath.Join(dir, "elect"))
	first, _, _ := strings.Cut(p.err.String(), "\n")
	require.Contains(t, first, "store=file://"+filepath.Join(dir, "elect"))
}

func TestShellsCompleteStoresAndFormats(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"status --store ":   "mem:\nfile:///\netcd://\netcds://\nconsul://\nconsuls://\nredis://\nrediss://\nsqlite:///\npostgres://\npostgresql://\nmysql://\nmariadb://\npaxos://\n:6\n",
		"watch -o ":         "text\njson\n:4\n",
		"run --log-format ": "text\njson\n:4\n",
		"run --log-level ":  "debug\ninfo\nwarn\nerror\n:4\n",
		"run --succession ": "none\nfirst\nrank\nring\nlist\n:4\n",
		"demo ":             "groups\tShow five processes that form groups in a network that is partitioned\nfirst\nrank\nring\nlist\n:4\n",
		"demo groups ":      ":4\n",
	} {
		status, stdout, _ := finish(t, append([]string{"__complete"}, strings.Split(args, " ")...)...)
		require.Zero(t, status)
		require.Equal(t, want, stdout)
	}
	_, stdout, _ := finish(t, "__complete", "help", "")
	require.Contains(t, stdout, "\nrun\t")
	require.Contains(t, stdout, "\nstores\t")
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		status, stdout, _ := finish(t, "completion", shell)
		require.Zero(t, status)
		require.Contains(t, stdout, "elect")
	}
}

func TestVersionNamesTheProgramAndGo(t *testing.T) {
	t.Parallel()
	line := regexp.MustCompile(`^elect (\S+) (\(\w+(, modified)?\) )?(go\S+) (\w+/\w+)\n$`)
	status, stdout, _ := finish(t, "version")
	require.Zero(t, status)
	parts := line.FindStringSubmatch(stdout)
	require.NotNil(t, parts, stdout)

	status, stdout, _ = finish(t, "version", "-o", "json")
	require.Zero(t, status)
	var b struct{ Version, Go, Platform string }
	require.NoError(t, json.Unmarshal([]byte(stdout), &b))
	require.Equal(t, []string{parts[1], parts[4], parts[5]}, []string{b.Version, b.Go, b.Platform})
}
