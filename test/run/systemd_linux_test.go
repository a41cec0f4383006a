package run_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

// Where systemd runs the tests may not start units, and elsewhere there is none. So each unit is
// checked by systemd-analyze, and this reads the lines of it on which the page relies.
const (
	systemctl = `
[ "$1" = daemon-reload ] && exit
for unit; do :; done
case $unit in *.timer | *.service) ;; *) unit=$unit.service ;; esac
complaints=$(systemd-analyze --man=no verify "$unit" 2>&1)
[ -z "$complaints" ] || { echo "$complaints" >&2; exit 1; }
case $unit in *.timer) exit ;; esac
name=${unit%.service}
case $name in
*@*) file=/etc/systemd/system/${name%%@*}@.service i=${name#*@} ;;
*) file=/etc/systemd/system/$name.service i= ;;
esac
line() { cat "$file" "/etc/systemd/system/$unit.d/"*.conf 2>/dev/null | sed -n "s/^$1=//p" | sed "s/%n/$unit/g; s/%i/$i/g"; }
environment() { # of "name=value" lines
	while IFS= read -r l; do case $l in '' | '#'*) ;; *) export "$(echo "$l" | sed "s/=['\"]\(.*\)['\"]$/=\1/")" ;; esac; done
}
run() {
	line Environment >/run/env-$$; environment </run/env-$$
	for f in $(line EnvironmentFile); do environment <"$f" || exit; done
	trap 'stopped=1; [ -z "$p" ] || kill -TERM $p' TERM
	while :; do
		eval "exec_start() { exec $(line ExecStart); }"
		exec_start & p=$!
		wait $p; status=$?
		while kill -0 $p 2>/dev/null; do wait $p; status=$?; done
		echo "$unit: status=$status"
		[ -z "$stopped" ] || exit 0
		case " 0 $(line SuccessExitStatus) " in
		*" $status "*) status=0 ;;
		*) for u in $(line OnFailure); do systemctl start "$u"; done ;;
		esac
		[ "$(line Restart)" = always ] || exit $status
		p= # a stop while it sleeps is no signal to anybody
		sleep "$(line RestartSec)"
		[ -z "$stopped" ] || exit 0
	done
}
mkdir -p /run/journal
stop() {
	p=$(cat "/run/$unit.pid") || return
	kill -TERM "$p"
	while kill -0 "$p" 2>/dev/null && ! grep -q '^State:.Z' "/proc/$p/status"; do sleep 0.05; done
}
case $1 in stop | restart) stop ;; esac
case $1:$(line Type) in
stop:*) ;;
*:oneshot) run >>"/run/journal/$unit" 2>&1 ;;
*) run >>"/run/journal/$unit" 2>&1 & echo $! >"/run/$unit.pid" ;;
esac
`
	journalctl = `
for unit; do :; done
cat "/run/journal/${unit%.service}.service"
`
)

func TestTheSystemdPage(t *testing.T) {
	t.Parallel()
	s := play(t, "systemd.md")
	l := newLan(t, map[string]string{"etcd-1:2379": testenv.StartEtcd(t).Addr()}, "a.example", "b.example", "c.example")
	l.requireBeside(s.next("sh"))
	install := s.next("sh")
	for _, h := range l.hosts {
		h.program("/usr/local/bin/billing", "trap 'sleep 0.3; echo done; exit' TERM; echo working; while :; do sleep 0.1; done")
		h.runs(install)
	}
	leader, others := l.leader("elect status --store etcd://etcd-1:2379/services billing")
	leader.eventually("journalctl -u elect@billing | grep working")
	s.console(leader.says)

	// It stops before the next one starts.
	leader.runs(s.next("sh"))
	require.Contains(t, leader.runs("journalctl -u elect@billing"), "done\n")
	next, _ := l.leader("elect status --store etcd://etcd-1:2379/services billing")
	require.NotEqual(t, leader.name, next.name)
	leader.runs("systemctl start elect@billing")
	restart := s.next("sh")
	for _, h := range append(others, leader) {
		h.runs(restart)
		l.leader("elect status --store etcd://etcd-1:2379/services billing")
	}

	// The answers over HTTP.
	web := s.next("sh")
	for _, h := range l.hosts {
		h.runs(web)
	}
	leader, _ = l.leader("elect status --store etcd://etcd-1:2379/services web")
	s.console(leader.says)

	// What a newcomer gets wrong.
	for _, mistake := range []string{
		"ELECT_STORE=etcd-1:2379 COMMAND=billing",
		"ELECT_STORE=etcd://etcd-2:2379 COMMAND=billing",
		"ELECT_STORE=etcd://etcd-1:2379/services COMMAND=/usr/local/bin/biling",
	} {
		others[0].runs("systemctl stop elect@billing; : >/run/journal/elect@billing.service; printf '%s\\n' " + mistake + " >/etc/elect/billing; systemctl start elect@billing")
		if strings.Contains(mistake, "biling") {
			for _, h := range l.hosts {
				if h != others[0] {
					h.runs("systemctl stop elect@billing")
				}
			}
		}
		s.told(others[0].eventually("journalctl -u elect@billing | grep -E 'unknown|waiting for the store|status=127'"))
	}
}

// leader waits until a table of elect status names a host and an heir, and returns that host and the others.
func (l *lan) leader(status string) (leader *host, others []*host) {
	l.Helper()
	table := l.hosts[0].eventually("table=$(" + status + `); echo "$table"; case $table in *"s)") ;; *) exit 1 ;; esac`)
	row := strings.Split(table, "\n")[1]
	for _, h := range l.hosts {
		if strings.HasPrefix(strings.Fields(row)[2], h.name) {
			leader = h
		} else {
			others = append(others, h)
		}
	}
	require.NotNil(l, leader, table)
	return leader, others
}
