package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/boottime"
)

const (
	tickHold = 8 * time.Second
	tickTTL  = 4 * time.Second

	// begin notes when the job begins, by a clock that nobody sets.
	begin = `read up idle </proc/uptime; echo "$up" >>"$1/begins"; `
)

// job starts elect run for a job of the given hold.
func (p *place) job(script string, flags ...string) *proc {
	p.t.Helper()
	return p.run(begin+script, append([]string{"--ttl", tickTTL.String(), "--grace", "500ms", "--hold", tickHold.String()}, flags...)...)
}

// begins returns when jobs began.
func (p *place) begins() []time.Duration {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.notes, "begins"))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(p.t, err)
	all := []time.Duration{}
	for line := range strings.Lines(string(text)) {
		seconds, err := strconv.ParseFloat(strings.TrimSpace(line), 64)
		require.NoError(p.t, err)
		all = append(all, time.Duration(seconds*float64(time.Second)))
	}
	return all
}

// uptime returns the time by the clock of begin, no more precisely than begin notes it.
func uptime() time.Duration { return boottime.Now().Truncate(10 * time.Millisecond) }

// apart requires that two jobs began, or more, the second one when the hold of the first was over.
// That began when the first host was started, or later.
func (p *place) apart(started, hold time.Duration) {
	p.t.Helper()
	begins := p.begins()
	require.GreaterOrEqual(p.t, len(begins), 2)
	require.GreaterOrEqual(p.t, begins[1]-started, hold, "%v", begins)
}

// everywhere runs a test on a directory, on real servers and in databases.
func everywhere(t *testing.T, test func(t *testing.T, p *place)) {
	urls := servers(t)
	maps.Copy(urls, databases(t))
	delete(urls, "postgres/observer")
	urls["file"] = ""
	for name, url := range urls {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // mostly it waits
			p := newPlace(t)
			if url != "" {
				p.store = url
			}
			p.name = "job-" + strconv.FormatInt(time.Now().UnixNano(), 36)
			test(t, p)
		})
	}
}

// Three hosts start the job at the same minute, the last one when the job is done.
func TestTheHostsOfOneTickRunItsJobOnce(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, p *place) {
		host := func(id string) *proc {
			return p.run(begin+"sleep 0.3", "--try", "--ttl", "20s", "--grace", "500ms", "--hold", "5m", "--id", id)
		}
		hosts := []*proc{host("one"), host("two")}
		for _, h := range hosts {
			h.status(t)
		}
		hosts = append(hosts, host("three"))
		statuses := map[int]int{}
		for _, h := range hosts {
			statuses[h.status(t)]++
		}
		require.Equal(t, map[int]int{0: 1, statusHeld: 2}, statuses)
		require.Len(t, p.begins(), 1)

		status, stdout, _ := finish(t, "status", "--store", p.store, p.name)
		require.Equal(t, 1, status, "nobody leads")
		require.Contains(t, stdout, "closed until about ")
		status, stdout, _ = finish(t, "status", "-o", "json", "--store", p.store, p.name)
		require.Equal(t, 1, status)
		require.Contains(t, stdout, `"hold":{"id":"`)
	})
}

func TestTheNextTickRunsTheJobAgain(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	started := uptime()
	for deadline := time.Now().Add(2 * time.Minute); len(p.begins()) < 2; {
		require.True(t, time.Now().Before(deadline), "the election is not open again")
		next := p.job("", "--try", "--log-level", "warn")
		status := next.status(t)
		switch said := next.err.String(); {
		case strings.Contains(said, "context deadline exceeded"):
			continue // a busy machine: what cron sends by mail is true
		case status == statusFailure, strings.Contains(said, "leadership lost: not refreshed in time"):
			p, started = newPlace(t), uptime() // so is this, and the hold may not have begun
			continue
		}
		require.Contains(t, []int{0, statusHeld}, status)
		require.Empty(t, next.err.String(), "cron would send it by mail")
	}
	p.apart(started, tickHold)
	require.Len(t, p.begins(), 2)
}

// The host that runs the job goes down in the middle of it.
func TestAfterAKilledElectNobodyRunsTheJobBeforeTheHoldIsOver(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, p *place) {
		for hold := tickHold; !p.killed(hold); hold *= 2 {
			require.Less(t, hold, time.Minute, "this machine is too busy to ask before the hold is over")
			p.name, p.notes = p.name+"-again", t.TempDir()
		}
	})
}

// killed kills the host that runs the job. It reports whether the next one asked before the
// hold was over.
func (p *place) killed(hold time.Duration) bool {
	p.t.Helper()
	started := uptime()
	one := p.job(stay, "--id", "one", "--hold", hold.String())
	child := p.pid("child")
	two := p.job("", "--id", "two", "--hold", hold.String())
	eventually(p.t, "the other waits", func() bool { return strings.Contains(two.err.String(), "waiting") })
	time.Sleep(tickHold / 4)
	one.send(p.t, syscall.SIGKILL)
	eventually(p.t, "the job is dead", func() bool { return !alive(child) })
	three := p.job("", "--try", "--id", "three", "--hold", hold.String())
	status := three.status(p.t)
	gaveUp := status == statusFailure && len(p.begins()) == 1 // a request of its own took too long
	if gaveUp || uptime() >= started+hold {
		_ = two.Process.Kill() // it may have done its job
		return false
	}
	require.Equal(p.t, statusHeld, status)
	require.Zero(p.t, two.status(p.t))
	p.apart(started, hold)
	if len(p.begins()) == 2 {
		return true
	}
	require.Contains(p.t, two.err.String(), "not refreshed in time", "its term went on, and it did its job again")
	return false
}

func TestTryExitsAtOnceWithAStatusOfItsOwnIfAnotherLeads(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.run(stay, "--id", "host-7")
	p.pid("child")
	e := p.run(`echo >"$1/second"`, "--try")
	require.Equal(t, 75, e.status(t), "a promise")
	require.Contains(t, e.err.String(), `COMMAND is not run`)
	require.Contains(t, e.err.String(), `host-7`)
	require.Zero(t, strings.Count(e.err.String(), "waiting"))
	quiet := p.run(`echo >"$1/second"`, "--try", "--log-level", "warn")
	require.Equal(t, 75, quiet.status(t))
	require.Empty(t, quiet.err.String())
	require.False(t, p.has("second"))
}

func TestTryRunsTheCommandIfNobodyLeads(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -KILL $$": 137} {
		p := newPlace(t)
		require.Equal(t, want, p.run(script, "--try").status(t))
		_, held := p.record()
		require.False(t, held)
	}
}

func TestTryDoesNotCampaignAgainAfterALoss(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	e := p.run(`trap 'exit 0' TERM; `+heed, "--try", "--ttl", "5m")
	p.pid("child")
	p.remove()
	require.Equal(t, 125, e.status(t))
	require.Contains(t, e.err.String(), "elect: leadership lost: ")
}

func TestTryAndHoldRefuseWhatCannotWork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, row := range []struct{ store, flag, want string }{
		{"mem:", "--hold=-1s", "--hold -1s is negative"},
		{"sqlite://" + dir + "/e.db?expiry=observer", "--hold=1m", "--hold does not work with expiry=observer"},
		{"sqlite://" + dir + "/e.db?expiry=observer", "--try", "--try does not work with expiry=observer"},
		{"consul://127.0.0.1:1", "--hold=1s", "hold 1s, which takes a record with a TTL of "},
		{"consul://127.0.0.1:1", "--hold=25h", "want up to 24h0m0s"},
	} {
		status, _, stderr := finish(t, "run", "--store", row.store, row.flag, "job", "--", "true")
		require.Equal(t, 125, status, row.want)
		require.Contains(t, stderr, row.want)
	}
	for _, command := range []string{"status", "resign", "watch"} {
		status, _, stderr := finish(t, command, "--store", "mem:", "job:hold")
		require.Equal(t, 125, status)
		require.Contains(t, stderr, fmt.Sprintf("is reserved for the hold of %q", "job"))
	}
}
