//go:build unix

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/cmd/elect/internal/demo"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
)

// demoOfGroups starts it with a directory of its own for temporary files, and an environment that
// is of no use to it.
func demoOfGroups(t *testing.T, tmp string) *proc {
	t.Helper()
	cmd := exec.Command(elect, "demo", "groups")
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp, "ELECT_STORE=redis://nowhere.invalid", "ELECT_CERT=none")
	return startCommand(t, cmd)
}

func TestTheDemoOfGroupsKeepsItsPromisesAndLeavesNothing(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	p := demoOfGroups(t, tmp)
	require.Zero(t, p.status(t))
	for _, promise := range []string{"one leader per number", "its members agree", "out of one, into the next", "one group per part"} {
		require.Contains(t, p.out.String(), "kept    "+promise)
	}
	require.NotContains(t, p.out.String(), "BROKEN")
	require.Contains(t, p.out.String(), "one group per part        6 times, within ")
	require.Contains(t, p.out.String(), "K SIGKILL")
	require.Regexp(t, `(?m)^anna .*█`, p.out.String())
	require.Regexp(t, `(?m)^(anna|ben|cleo|dora|emil) .*(aaaa|bbbb|cccc|dddd|eeee)`, p.out.String())
	at := 0
	for _, step := range []string{
		`^elect \S+: five processes, no store, `,
		`nobody reaches anybody yet\n`, `LEADS emil\n`, `after \S+ s: five groups of one\n`,
		`the network is whole\n`, `LEADS anna, ben, cleo, dora, emil\n`, `after \S+ s: one group\n`,
		`the network is partitioned: anna ben cleo \| dora emil\n`, `after \S+ s: two groups lead side by side\n`, `belongs in an election: elect demo`,
		`the network is whole\n`, `after \S+ s: one group again\n`,
		`is killed\n`, `after \S+ s: the others are one group\n`,
		`starts\n`, `after \S+ s: \w+ is back: one group\n`,
	} {
		found := regexp.MustCompile(step).FindStringIndex(p.err.String()[at:])
		require.NotNil(t, found, "%q does not come after:\n%s", step, p.err.String()[:at])
		at += found[1]
	}
	requireEmpty(t, tmp)
	require.Empty(t, inRole(t, memberRole, tmp))
}

// The demos run side by side: they wait for most of their time.
func TestTheDemoOfGroupsLeavesNothingWhenInterruptedOrKilled(t *testing.T) {
	for _, moment := range []string{"LEADS emil", "is partitioned", "is killed"} {
		for sig, status := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGKILL: -1} {
			t.Run(moment+" "+sig.String(), func(t *testing.T) {
				t.Parallel()
				tmp := t.TempDir()
				p := demoOfGroups(t, tmp)
				eventually(t, moment, func() bool { return strings.Contains(p.err.String(), moment) })
				require.NotEmpty(t, inRole(t, memberRole, tmp))
				p.send(t, sig)
				require.Equal(t, status, p.status(t))
				if sig == syscall.SIGINT {
					require.Contains(t, p.err.String(), "elect: interrupted; all processes of the demo are gone\n")
					requireEmpty(t, tmp)
					require.Empty(t, inRole(t, memberRole, tmp))
				}
				eventually(t, "no process is left", func() bool { return len(inRole(t, memberRole, tmp)) == 0 })
			})
		}
	}
}

func TestTheDemoOfGroupsSaysWhatWasBrokenAndKeepsTheHistory(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	lie := history.Event{Who: "ben", Kind: history.Started, Group: history.Group{Number: "1", Leader: "ben", Members: []string{"anna", "ben"}}}
	played := history.History{Events: []history.Event{lie}}
	lie.Who = "anna"
	played.Events = append(played.Events, lie)
	var out bytes.Buffer
	err := conclude(&out, "who led whom", played, (&demo.Meeting{}).Judge(played), nil)
	var e exit
	require.ErrorAs(t, err, &e)
	require.Equal(t, statusNo, e.status)
	require.Contains(t, out.String(), "who led whom\n")
	require.Contains(t, out.String(), "BROKEN  one leader per number     ben and anna led group 1\n")
	require.Contains(t, out.String(), "unseen  one group per part        nothing was to be seen\n")
	_, file, _ := strings.Cut(err.Error(), "what happened is in ")
	saved, err := history.Load(strings.TrimSpace(file))
	require.NoError(t, err)
	require.Equal(t, played, saved)
}

// On a busy machine a play may end before all has happened that it is there to show.
func TestADemoThatShowedTooLittleSaysSoAndBlamesNoPromise(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	findings := oracle.Findings{
		{Promise: "one leader at a time", Verdict: oracle.Kept, Detail: "1 term"},
		{Promise: "a sleeper finds out", Verdict: oracle.Silent, Detail: "no leader was woken"},
	}
	var out bytes.Buffer
	err := conclude(&out, "who led when", history.History{}, findings, errors.New("too slow"))
	require.ErrorContains(t, err, "not every promise was put to the test")
	require.ErrorContains(t, err, "too slow")
	var e exit
	require.NotErrorAs(t, err, &e, "no status of its own: 125")
	require.Contains(t, out.String(), "kept    one leader at a time      1 term\nunseen  a sleeper finds out       no leader was woken\n")
	requireEmpty(t, os.Getenv("TMPDIR"))
	require.Equal(t, "The demo is over. Not put to the test: a sleeper finds out (no leader was woken). Promises kept: one leader at a time.", judgement(findings))
	require.Error(t, conclude(&out, "who led when", history.History{}, findings, nil))
	require.NoError(t, conclude(&out, "who led when", history.History{}, findings[:1], nil))
}
