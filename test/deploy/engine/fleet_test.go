package engine_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/markdown"
)

// A fleet is three containers of one service, which docs/run/compose.md starts.
type fleet struct {
	page       markdown.Page
	dir        string // of docker-compose.yml
	env        []string
	network    string
	containers []string
	journal    *journal
	frozen     map[string]bool // tokens of leaders that were paused: they cannot stop in time
	faults     map[string]bool // the page's commands that make one, and end it: whether it was run
}

// up starts a fleet as the page says.
func up(t *testing.T, service string) *fleet {
	t.Helper()
	page, err := markdown.Read(filepath.Join(root(t), "docs/run/compose.md"))
	require.NoError(t, err)
	require.Len(t, page.Blocks, 6, "who runs the others?")
	start, seen := map[string]int{"worker": 0, "job": 1}[service], map[string]int{"worker": 2, "job": 3}[service]
	faults, down := page.Blocks[4], page.Blocks[5]
	project := "election-example-" + service
	f := &fleet{
		page: page, dir: filepath.Join(root(t), "examples/compose"), network: project + "_default", journal: newJournal(),
		env:    []string{"COMPOSE_PROJECT_NAME=" + project, "GOWORK=", "PATH=" + commands(t) + ":" + os.Getenv("PATH")},
		frozen: map[string]bool{}, faults: map[string]bool{},
	}
	for command := range strings.Lines(faults.Text) {
		f.faults[strings.TrimSpace(command)] = false
	}
	f.runs(t, f.dir, down.Text) // what a run that was killed has left
	t.Cleanup(func() {
		f.runs(t, f.dir, down.Text)
		f.runs(t, f.dir, "docker compose --profile job down --rmi=local")
	})
	f.runs(t, root(t), page.Blocks[start].Text)
	f.containers = strings.Fields(docker(t, "ps", "--format={{.Names}}", "--filter=label=com.docker.compose.project="+project,
		"--filter=label=com.docker.compose.service="+service))
	require.Len(t, f.containers, 3)
	for _, c := range f.containers {
		f.journal.follow(t, c, "0")
	}
	f.first(t)
	f.prints(t, page.Blocks[seen])
	return f
}

// runs runs a block of the page.
func (f *fleet) runs(t *testing.T, dir, script string) string {
	t.Helper()
	out, err := f.command(dir, script).CombinedOutput()
	require.NoError(t, err, "%s: %s", script, out)
	return string(out)
}

func (f *fleet) command(dir, script string) *exec.Cmd {
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), f.env...)
	return cmd
}

// prints runs a transcript until it prints what the page says.
func (f *fleet) prints(t *testing.T, block markdown.Block) {
	t.Helper()
	for command, want := range block.Commands() {
		for deadline := time.Now().Add(4 * slack); ; time.Sleep(time.Second) {
			out, _ := f.command(f.dir, command).CombinedOutput() // elect status fails while nobody leads
			// Compose 1 has underscores in names.
			missing := markdown.Unlike(want, strings.ReplaceAll(string(out), "worker_", "worker-"))
			if missing == "" {
				break
			}
			require.Less(t, time.Now(), deadline, "%s: %s: no line is like\n%s\nin\n%s", block.At, command, missing, out)
		}
	}
}

// does runs the page's command that does something to a container, with the name of this one.
func (f *fleet) does(t *testing.T, what, container string) {
	t.Helper()
	for command := range f.faults {
		if strings.HasPrefix(command, "docker "+what+" ") {
			f.faults[command] = true
			f.runs(t, f.dir, strings.NewReplacer("compose-worker-2", container, "compose_default", f.network).Replace(command))
			return
		}
	}
	require.Fail(t, "the page does not say how to docker "+what)
}

// commands is a folder that has docker, with the Compose that is here.
func commands(t *testing.T) string {
	t.Helper()
	real, err := exec.LookPath("docker")
	require.NoError(t, err)
	compose := composeCommand(t)
	compose[0], err = exec.LookPath(compose[0])
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "docker"), fmt.Appendf(nil, `#!/bin/sh
[ "$1" = compose ] || exec %s "$@"
shift
exec %s "$@"
`, real, strings.Join(compose, " ")), 0o755))
	return dir
}

// composeCommand is the plugin of docker, or the program that came before it.
func composeCommand(t testing.TB) []string {
	t.Helper()
	if command := os.Getenv("COMPOSE"); command != "" {
		return strings.Fields(command)
	}
	if exec.Command("docker", "compose", "version").Run() == nil {
		return []string{"docker", "compose"}
	}
	require.NoError(t, exec.Command("docker-compose", "version").Run(), "neither docker compose nor docker-compose is installed")
	return []string{"docker-compose"}
}

// first waits for the first leader, and for the others to stand by.
func (f *fleet) first(t *testing.T) line {
	t.Helper()
	leader := f.journal.await(t, 0, slack, "a leader", line.leads)
	for _, c := range f.containers {
		f.journal.await(t, 0, slack, c+" stands", func(l line) bool {
			return l.container == c && (waits(l) || l.leads())
		})
	}
	return leader
}

func waits(l line) bool {
	return strings.Contains(l.text, `msg="waiting to lead"`) || strings.Contains(l.text, " waiting election=")
}

// after waits for another container to lead than the one that led.
func (f *fleet) after(t *testing.T, mark int, led line, within time.Duration) line {
	t.Helper()
	return f.journal.await(t, mark, within, "the next leader", func(l line) bool { return l.leads() && l.container != led.container })
}

// revive starts a container that has ended, and waits until it stands by.
func (f *fleet) revive(t *testing.T, container string) {
	t.Helper()
	mark := f.journal.mark()
	since := docker(t, "inspect", "--format={{.State.FinishedAt}}", container)
	f.does(t, "start", container)
	f.journal.follow(t, container, since)
	f.journal.await(t, mark, slack, container+" stands by", func(l line) bool { return l.container == container && waits(l) })
}

// judge reads all that was printed: tokens grow, and nobody works under a token once
// the next one leads, but for those who were frozen.
func (f *fleet) judge(t *testing.T) {
	t.Helper()
	for command, run := range f.faults {
		require.True(t, run, "%s: %s was not run", f.page.Path, command)
	}
	lines := f.journal.sorted()
	var terms []line
	for _, l := range lines {
		if l.leads() {
			terms = append(terms, l)
		}
	}
	for i := 1; i < len(terms); i++ {
		before, now := terms[i-1], terms[i]
		require.Greater(t, now.token(), before.token(), "tokens grow:\n%v", f.journal) // they have the same number of digits
		for _, l := range lines {
			if l.works() && l.token() == before.token() && !f.frozen[before.token()] {
				require.False(t, l.at.After(now.at), "%v, after %v", l, now)
			}
		}
	}
}
