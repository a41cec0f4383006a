package run_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThePeersPage(t *testing.T) {
	t.Parallel()
	long(t, "it waits for a quarantine of 15 s")
	s := play(t, "peers.md")
	l := newLan(t, nil, "a.example", "b.example", "c.example")
	l.requireBeside(s.next("sh"))
	start := s.next("sh")
	for _, h := range l.hosts {
		h.program("/usr/local/bin/report", "trap 'sleep 0.3; echo done; exit' TERM; echo working; while :; do sleep 0.1; done")
		h.runs(start)
	}
	one, environment := l.hosts[0], strings.SplitN(start, "\n", 2)[0]+"\n"
	s.console(one.says)

	// Three on one host need no quarantine.
	printed := l.requireBeside(s.next("sh"))
	require.Equal(t, 3, strings.Count(printed, "elect run NAME -- COMMAND"), printed)

	// The unit, as systemd reads it.
	l.requireBeside("scp deploy/systemd/elect@.service a.example:/etc/systemd/system/")
	one.runs(s.next("sh"))
	one.runs("systemd-analyze --man=no verify elect@report.service")

	s.told(one.eventually("grep 'no majority' report.log"))
	leader, _ := l.leader(environment + "elect status report")
	s.console(func(command string) (int, string) { return leader.says(environment + command) })

	// A second process with the same address, and one without its certificate.
	_, out := one.says(environment + "elect run --wait 0 report -- true")
	s.told(out)

	leader.runs("pkill -TERM -o -x elect")
	require.Contains(t, leader.eventually("! pgrep -x elect && cat report.log"), "done\n")
	next, _ := l.leader(environment + "elect status report")
	require.NotEqual(t, leader.name, next.name)

	_, out = leader.says("rm /etc/elect-nightly/elect.pem; " + environment + "elect run --wait 0 report -- true")
	s.told(out)
}
