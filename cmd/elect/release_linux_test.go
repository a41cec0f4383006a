package main

import (
	"crypto/rand"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/cmd/elect/internal/stores"
	"github.com/electkv/election/internal/testenv"
)

const (
	// endless is a TTL that does not pass in a test.
	endless = "10m"
	// dawdle starts a descendant that gets away, and takes its time to end.
	dawdle = `setsid sh -c 'trap "sleep 0.5; exit" TERM; echo $$ >"$1/session"; while :; do sleep 0.05; done' sh "$1" &
`
)

// at returns a place in a store, with an election of its own.
func at(t *testing.T, url string) *place {
	t.Helper()
	address, err := stores.Parse(url, os.Getenv)
	require.NoError(t, err)
	store, err := address.Open()
	require.NoError(t, err)
	t.Cleanup(func() { store.Close() })
	return &place{t: t, store: url, name: "job-" + strings.ToLower(rand.Text()), kv: store.KV, notes: t.TempDir()}
}

// gone waits until processes have ended.
func gone(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		eventually(t, "process "+strconv.Itoa(pid)+" ends", func() bool { return !alive(pid) })
	}
}

func TestTheNextCommandRunsAsSoonAsNobodyIsLeftOfAnElectThatWasKilled(t *testing.T) {
	urls := servers(t)
	maps.Copy(urls, databases(t))
	for name, url := range urls {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // mostly it waits
			p := at(t, url)
			first := p.run(dawdle+stay, "--id", "first", "--ttl", endless)
			child, session := p.pid("child"), p.pid("session")
			second := p.run(`for f in child session; do kill -0 $(cat "$1/$f") && touch "$1/alive"; done; `+
				`echo $$ >"$1/second"; exec sleep 1000`, "--id", "second", "--ttl", endless)
			eventually(t, "the second waits", func() bool { return strings.Contains(second.err.String(), "waiting") })
			killed := time.Now()
			first.send(t, syscall.SIGKILL)
			p.pid("second")
			t.Log("the next command runs after", time.Since(killed))
			require.False(t, p.has("alive"), "the first command, or what came of it, still ran")
			require.False(t, alive(child))
			require.False(t, alive(session))
		})
	}
}

// What happens to the store's connections before elect is killed ends a second later.
func TestTheGuardReleasesThoughTheStoreIsAwayForAWhile(t *testing.T) {
	for name, url := range servers(t) {
		for what, harm := range map[string]func(*testenv.Proxy){
			"refused":             (*testenv.Proxy).Cut,
			"silent":              (*testenv.Proxy).BlackHole,
			"without its replies": (*testenv.Proxy).DropReplies,
			"slow":                func(p *testenv.Proxy) { p.Delay(300 * time.Millisecond) },
		} {
			t.Run(name+" is "+what, func(t *testing.T) {
				t.Parallel() // mostly it waits
				p := at(t, url)
				server := strings.Split(url, "/")[2]
				proxy := testenv.NewProxy(t, server)
				direct := p.store
				p.store = strings.Replace(url, server, proxy.Addr(), 1)
				first := p.run(stay, "--id", "first", "--ttl", endless)
				child, guard := p.pid("child"), guardOf(t, first)
				p.store = direct
				second := p.run(`echo $$ >"$1/second"; exec sleep 1000`, "--id", "second", "--ttl", endless)
				eventually(t, "the second waits", func() bool { return strings.Contains(second.err.String(), "waiting") })
				harm(proxy)
				first.send(t, syscall.SIGKILL)
				gone(t, child)
				time.Sleep(time.Second)
				proxy.Heal()
				p.pid("second")
				gone(t, guard)
			})
		}
	}
}

func TestTheGuardReleasesWithTheStoresSecretsThatTheCommandDoesNotGet(t *testing.T) {
	t.Parallel()
	redis := testenv.StartRedis(t, "--requirepass", "hunter2").Addr()
	p := at(t, "redis://:hunter2@"+redis)
	e := startWith(t, []string{"ELECT_STORE=redis://" + redis, "REDISCLI_AUTH=hunter2"},
		"run", "--ttl", endless, p.name, "--", "sh", "-c",
		`env >"$1/env"; ls -l /proc/$$/fd >"$1/files"; `+stay, "sh", p.notes)
	p.pid("child")
	guard := guardOf(t, e)
	for _, file := range []string{p.notes + "/env", "/proc/" + strconv.Itoa(guard) + "/cmdline", "/proc/" + strconv.Itoa(guard) + "/environ"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NotContains(t, string(text), "hunter2", file)
	}
	files, err := os.ReadFile(p.notes + "/files")
	require.NoError(t, err)
	require.NotContains(t, string(files), "4 -> ", "COMMAND has a pipe of the guard: %s", files)
	_, held := p.record()
	require.True(t, held)
	e.send(t, syscall.SIGKILL)
	eventually(t, "the lease is released", func() bool { _, held := p.record(); return !held })
	require.False(t, alive(p.pid("child")))
}

func TestTheTTLKeepsOthersOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		flags  []string
		kill   func(t *testing.T, e *proc)
	}{
		"with --linger":                 {script: stay, flags: []string{"--linger"}},
		"if SIGKILL was needed":         {script: `trap '' TERM; ` + stay, flags: []string{"--grace", "300ms"}},
		"if --on-lost fails":            {script: stay, flags: []string{"--on-lost", "exit 1"}},
		"if --on-lost had to be killed": {script: stay, flags: []string{"--grace", "300ms", "--on-lost", "trap '' TERM; while :; do sleep 0.05; done"}},
		"if the guard is killed first": {script: stay, kill: func(t *testing.T, e *proc) {
			e.send(t, syscall.SIGSTOP) // it does not see that the guard dies
			require.NoError(t, syscall.Kill(guardOf(t, e), syscall.SIGKILL))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := at(t, "redis://"+testenv.Redis(t)+"/0?prefix=elect-test:")
			e := p.run(c.script, append([]string{"--ttl", endless}, c.flags...)...)
			child, guard := p.pid("child"), guardOf(t, e)
			before, held := p.record()
			require.True(t, held)
			if c.kill != nil {
				c.kill(t, e)
			}
			e.send(t, syscall.SIGKILL)
			gone(t, child, guard)
			now, held := p.record()
			require.True(t, held, "the lease was released")
			require.True(t, now.Owns(before))
			p.remove()
		})
	}
}

// While the guard waited for a descendant an operator has removed the record, and another leads.
func TestTheGuardReleasesNobodyElsesLease(t *testing.T) {
	t.Parallel()
	p := at(t, "redis://"+testenv.Redis(t)+"/0?prefix=elect-test:")
	const lingers = `setsid sh -c 'trap "until [ -e $1/over ]; do sleep 0.05; done; exit" TERM; echo $$ >"$1/session"; while :; do sleep 0.05; done' sh "$1" &
`
	e := p.run(lingers+stay, "--ttl", endless, "--grace", "2m", "--id", "first")
	p.pid("child")
	session, guard := p.pid("session"), guardOf(t, e)
	rec, held := p.record()
	require.True(t, held)
	e.send(t, syscall.SIGKILL)
	p.remove()
	p.run(`echo $$ >"$1/second"; exec sleep 1000`, "--id", "second", "--ttl", endless)
	p.pid("second")
	require.True(t, alive(guard))
	require.NoError(t, os.WriteFile(filepath.Join(p.notes, "over"), nil, 0o600))
	gone(t, session, guard)
	now, held := p.record()
	require.True(t, held)
	require.False(t, now.Owns(rec))
}

func TestRunRefusesToLingerInADirectory(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	status, _, stderr := finish(t, "run", "--store", p.store, "--linger", "job", "--", "true")
	require.Equal(t, 125, status)
	require.Contains(t, stderr, "--linger does not work with a directory")
}
