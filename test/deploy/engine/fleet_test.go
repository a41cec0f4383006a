package engine_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A fleet is three containers of one service of examples/compose.
type fleet struct {
	network    string
	containers []string
	journal    *journal
	frozen     map[string]bool // tokens of leaders that were paused: they cannot stop in time
}

// up starts a fleet as the page of the example says.
func up(t *testing.T, service string) *fleet {
	t.Helper()
	dir := filepath.Join(root(t), "examples/compose")
	project := "election-example-" + service
	compose := func(args ...string) {
		t.Helper()
		words := slices.Concat(composeCommand(t), []string{"--project-directory", dir, "--file", filepath.Join(dir, "docker-compose.yml"),
			"--project-name", project, "--profile", "job"}, args)
		_, stderr, err := attempt(words[0], words[1:]...)
		require.NoError(t, err, "%s: %s", words, stderr)
	}
	program(t, "./examples/compose", filepath.Join(dir, "worker"))
	compose("down", "--volumes", "--timeout=1") // of a run that was killed
	t.Cleanup(func() { compose("down", "--volumes", "--timeout=1", "--rmi=local") })
	compose("up", "--detach", "--build", "--scale", service+"=3", service)
	f := &fleet{network: project + "_default", journal: newJournal(), frozen: map[string]bool{}}
	f.containers = strings.Fields(docker(t, "ps", "--format={{.Names}}", "--filter=label=com.docker.compose.project="+project,
		"--filter=label=com.docker.compose.service="+service))
	require.Len(t, f.containers, 3)
	for _, c := range f.containers {
		f.journal.follow(t, c, "0")
	}
	return f
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
	docker(t, "start", container)
	f.journal.follow(t, container, since)
	f.journal.await(t, mark, slack, container+" stands by", func(l line) bool { return l.container == container && waits(l) })
}

// judge reads all that was printed: tokens grow, and nobody works under a token once
// the next one leads, but for those who were frozen.
func (f *fleet) judge(t *testing.T) {
	t.Helper()
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
