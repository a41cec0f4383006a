package run_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

// tick does what cron does with a file of /etc/cron.d: it sets what the file sets, and starts its only
// job with a shell, in a small environment. Where the tests run there may be no cron, and
// none would do so at once.
const tick = `sed -n 's/^\([A-Z_]*=.*\)$/export \1/p' /etc/cron.d/nightly >/run/cron
sed -n 's/^\([-0-9*/,]\+ \+\)\{5\} *root \+//p' /etc/cron.d/nightly >>/run/cron
exec env -i HOME=/root LOGNAME=root SHELL=/bin/sh PATH=/usr/bin:/bin sh /run/cron`

func TestTheCronPage(t *testing.T) {
	t.Parallel()
	s := play(t, "cron.md")
	etcd := testenv.StartEtcd(t).Addr()
	l := newLan(t, map[string]string{"etcd-1:2379": etcd, "etcd-2:2379": etcd}, "a.example", "b.example", "c.example")
	crontab, timer, start := s.next("sh"), s.next("sh"), s.next("sh")
	for _, h := range l.hosts {
		h.program("/usr/local/bin/report", "echo reported; sleep 0.5")
		h.program("/usr/local/bin/alert", `echo "$@" >>/run/alerts`)
		h.runs(crontab)
		h.runs(timer)
	}
	mails := make(map[int][]string) // by status
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, h := range l.hosts {
		all.Go(func() {
			status, mail := h.says(tick)
			mu.Lock()
			defer mu.Unlock()
			mails[status] = append(mails[status], mail)
		})
	}
	all.Wait()
	require.Equal(t, []string{"reported\n"}, mails[0], "elect prints nothing where all goes well")
	require.Equal(t, []string{"", ""}, mails[75], "a host that does not run it sends no mail")
	status, mail := l.hosts[0].says(tick)
	require.Equal(t, 75, status, "a host is late: %s", mail)
	s.console(l.hosts[0].says)

	// The timer finds the same election closed, which is no failure.
	one := l.hosts[0]
	one.runs(start)
	require.Contains(t, one.runs("journalctl -u nightly"), "status=75")
	require.NotZero(t, first(one.says("ls /run/alerts")))
	one.runs("sed -i s/nightly/fails/ /etc/systemd/system/nightly.service; sed -i 's,bin/report,bin/false,' /etc/systemd/system/nightly.service")
	require.NotZero(t, first(one.says(start)))
	require.Equal(t, "nightly.service\n", one.runs("cat /run/alerts"))

	// What a newcomer gets wrong.
	for edit, want := range map[string]int{
		"s,etcd://etcd-1:2379.etcd-2:2379,etcd-1:2379,":     125,
		"s,etcd-1:2379.etcd-2:2379,etcd-9:2379,":            125,
		"/^ELECT_STORE/d; s/--log-level warn//":             0,
		"s,/usr/local/bin/report,report,; s,nightly,other,": 127,
	} {
		one.runs(crontab + "sed -i '" + edit + "' /etc/cron.d/nightly")
		status, mail := one.says(tick)
		require.Equal(t, want, status, mail)
		s.told(mail)
	}
}

func first(status int, _ string) int { return status }
