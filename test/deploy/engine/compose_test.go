package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What docs/run/compose.md promises of the service that uses the library.
func TestTheNextWorkerLeads(t *testing.T) {
	f := up(t, "worker")
	leader := f.first(t)
	leader = f.killed(t, leader)
	leader = f.paused(t, leader, line.stopped)
	leader = f.disconnected(t, leader)
	f.stopped(t, leader)
	f.judge(t)
}

// What it promises of elect run as the entry point.
func TestTheNextJobLeads(t *testing.T) {
	f := up(t, "job")
	leader := f.first(t)
	leader = f.killed(t, leader)
	leader = f.paused(t, leader, func(l line) bool { return strings.Contains(l.text, " term ended election=job") })
	leader = f.disconnected(t, leader)
	f.stopped(t, leader)
	f.judge(t)
}

func (f *fleet) killed(t *testing.T, leader line) (next line) {
	t.Helper()
	mark, killed := f.journal.mark(), time.Now()
	f.does(t, "kill", leader.container)
	next = f.after(t, mark, leader, ttl+slack)
	require.Less(t, next.seen.Sub(killed), ttl+slack)
	t.Logf("after docker kill the next led within %v", next.seen.Sub(killed))
	require.Equal(t, 137, exitCode(t, leader.container))
	f.revive(t, leader.container)
	return next
}

func (f *fleet) paused(t *testing.T, leader line, ends func(line) bool) (next line) {
	t.Helper()
	f.frozen[leader.token()] = true
	var started, restarted time.Time
	inspect(t, leader.container, ".State.StartedAt", &started)
	mark, paused := f.journal.mark(), time.Now()
	f.does(t, "pause", leader.container)
	next = f.after(t, mark, leader, ttl+slack)
	t.Logf("after docker pause the next led within %v", next.seen.Sub(paused))
	time.Sleep(ttl / 2) // it sleeps for a grace and more, beyond the end of its term
	woken := time.Now()
	f.does(t, "unpause", leader.container)
	end := f.journal.await(t, mark, slack, "the sleeper finds out", func(l line) bool { return l.container == leader.container && ends(l) })
	t.Logf("after docker unpause the sleeper found out within %v", end.seen.Sub(woken))
	require.True(t, end.at.After(next.at), "it could not know before:\n%v", f.journal)
	time.Sleep(3 * time.Second) // of work, if it went on
	for _, l := range f.journal.sorted() {
		if l.works() && l.token() == leader.token() {
			require.Less(t, l.at.Sub(end.at), time.Second, "it works on after it found out: %v", l)
		}
	}
	inspect(t, leader.container, ".State.StartedAt", &restarted)
	require.Equal(t, started, restarted, "the program has ended:\n%v", f.journal)
	return next
}

func (f *fleet) disconnected(t *testing.T, leader line) (next line) {
	t.Helper()
	mark, cut := f.journal.mark(), time.Now()
	f.does(t, "network disconnect", leader.container)
	next = f.after(t, mark, leader, ttl+slack)
	stopped := f.journal.await(t, mark, slack, "the old leader stops", func(l line) bool { return l.container == leader.container && l.stopped() })
	require.True(t, stopped.at.Before(next.at), "the old leader stops before the next one starts:\n%v", f.journal)
	t.Logf("after docker network disconnect the old leader stopped within %v, the next led within %v, %v later",
		stopped.seen.Sub(cut), next.seen.Sub(cut), next.at.Sub(stopped.at))
	f.does(t, "network connect", leader.container)
	f.leadsWhenTheOthersStop(t, leader.container, next)
	return f.journal.last(line.leads)
}

// leadsWhenTheOthersStop shows that a container stands for election again.
func (f *fleet) leadsWhenTheOthersStop(t *testing.T, container string, leader line) {
	t.Helper()
	mark := f.journal.mark()
	others := []string{leader.container}
	for _, c := range f.containers {
		if c != container && c != leader.container {
			others = append([]string{c}, others...) // the leader last
		}
	}
	for _, c := range others {
		docker(t, "stop", c)
	}
	f.journal.await(t, mark, ttl+slack, container+" leads again", func(l line) bool { return l.container == container && l.leads() })
	for _, c := range others {
		f.revive(t, c)
	}
}

func (f *fleet) stopped(t *testing.T, leader line) {
	t.Helper()
	mark, told := f.journal.mark(), time.Now()
	f.does(t, "stop", leader.container)
	next := f.after(t, mark, leader, ttl+slack)
	stopped := f.journal.await(t, mark, slack, "the old leader stops", func(l line) bool { return l.container == leader.container && l.stopped() })
	require.True(t, stopped.at.Before(next.at), "the old leader stops before the next one starts:\n%v", f.journal)
	require.Less(t, next.at.Sub(stopped.at), ttl/2, "a leader that stops in good order keeps nobody out:\n%v", f.journal)
	require.Zero(t, exitCode(t, leader.container))
	t.Logf("after docker stop the next led within %v, %v after the old one had stopped", next.seen.Sub(told), next.at.Sub(stopped.at))
}
