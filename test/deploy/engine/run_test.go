package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A site is a store that containers of one image share: busybox, with elect as its
// entry point.
type site struct {
	image  string
	volume string
}

func newSite(t *testing.T) *site {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(`
FROM busybox:1.37.0
COPY --from=elect /elect /usr/local/bin/elect
COPY --from=elect --chown=65532:65532 /var/lib/elect /var/lib/elect
USER 65532:65532
ENV ELECT_STORE=file:///var/lib/elect
ENTRYPOINT ["elect", "run", "--ttl=5s", "job", "--"]
HEALTHCHECK --interval=1s --timeout=8s --retries=3 CMD ["elect", "status", "job"]
`), 0o600))
	return &site{image: build(t, dir), volume: volume(t)}
}

// run starts a container whose COMMAND is a shell script, which prints "leading", and
// returns it with what it prints.
func (s *site) run(t *testing.T, script string) (container string, j *journal) {
	t.Helper()
	container = start(t, "--volume="+s.volume+":/var/lib/elect", s.image, "sh", "-c", script)
	j = newJournal()
	j.follow(t, container, "0")
	return container, j
}

func says(text string) func(line) bool {
	return func(l line) bool { return strings.Contains(l.text, text) }
}

const stay = "echo leading token=$ELECTION_TOKEN; while :; do sleep 1 & wait $!; done"

func TestTheContainersExitStatusIsThatOfTheCommand(t *testing.T) {
	s := newSite(t)
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -KILL $$": 137} {
		container, _ := s.run(t, script)
		docker(t, "wait", container)
		require.Equal(t, want, exitCode(t, container), script)
	}
}

func TestDockerStopEndsTheCommandAndFreesTheSafe(t *testing.T) {
	s := newSite(t)
	first, j := s.run(t, `trap 'sleep 2; echo ready to go; exit 3' TERM; `+stay)
	j.await(t, 0, slack, "a leader", line.leads)
	second, next := s.run(t, stay)
	next.await(t, 0, slack, "a candidate", waits)

	docker(t, "stop", "--time=60", first)
	require.Equal(t, 3, exitCode(t, first), "the command had its time")
	gone := j.await(t, 0, slack, "its last words", says("ready to go"))
	lead := next.await(t, 0, slack, "the next leader", line.leads)
	require.True(t, lead.at.After(gone.at), "the next one starts when the work has stopped")

	third, waiting := s.run(t, stay)
	waiting.await(t, 0, slack, "a candidate", waits)
	docker(t, "stop", "--time=60", third)
	require.Equal(t, 143, exitCode(t, third), "SIGTERM ended the wait")
	docker(t, "stop", "--time=60", second)
	require.Equal(t, 143, exitCode(t, second), "SIGTERM ended the command")
}

// The kernel kills all processes of a container with the first.
func TestACommandThatIsDeafToSIGTERMEndsWithTheGracePeriod(t *testing.T) {
	s := newSite(t)
	first, j := s.run(t, `trap '' TERM; `+stay)
	led := j.await(t, 0, slack, "a leader", line.leads)
	_, next := s.run(t, stay)
	next.await(t, 0, slack, "a candidate", waits)
	docker(t, "stop", "--time=2", first)
	require.Equal(t, 137, exitCode(t, first))
	lead := next.await(t, 0, slack+5*time.Second, "the next leader", line.leads)
	require.Greater(t, lead.token(), led.token())
	var finished time.Time
	inspect(t, first, ".State.FinishedAt", &finished)
	require.True(t, lead.at.After(finished), "the safe outlives the command")
}

func TestElectPassesSignalsOnAndCollectsOrphansAsTheFirstProcess(t *testing.T) {
	s := newSite(t)
	container, j := s.run(t, `trap 'echo hangup' HUP; trap 'echo usr1' USR1; (sleep 1 & exit 0); `+stay)
	j.await(t, 0, slack, "a leader", line.leads)
	docker(t, "kill", "--signal=HUP", container)
	j.await(t, 0, slack, "SIGHUP", says("hangup"))
	docker(t, "kill", "--signal=USR1", container)
	j.await(t, 0, slack, "SIGUSR1", says("usr1"))

	// An orphan of somebody who came in from outside.
	docker(t, "exec", container, "sh", "-c", "(sleep 1 & exit 0)")
	require.Contains(t, docker(t, "exec", container, "cat", "/proc/1/comm"), "elect")
	time.Sleep(2 * time.Second) // until both orphans have ended
	require.Eventually(t, func() bool {
		return !strings.Contains(docker(t, "exec", container, "sh", "-c", "cat /proc/[0-9]*/stat"), ") Z ")
	}, slack, 500*time.Millisecond, "a zombie stays")
	docker(t, "stop", container)
}

func TestTheHealthCheckTellsWhetherSomebodyLeads(t *testing.T) {
	s := newSite(t)
	leader, j := s.run(t, stay)
	j.await(t, 0, slack, "a leader", line.leads)
	waiting, k := s.run(t, stay)
	k.await(t, 0, slack, "a candidate", waits)
	for _, c := range []string{leader, waiting} {
		require.Eventually(t, func() bool { return health(t, c) == "healthy" }, 2*slack, 500*time.Millisecond, c)
	}
	// The store becomes unusable for those who ask anew.
	docker(t, "exec", "--user=0", waiting, "sh", "-c", "chmod 0 /var/lib/elect")
	require.Eventually(t, func() bool { return health(t, waiting) == "unhealthy" }, 2*slack, 500*time.Millisecond)
}

func health(t *testing.T, container string) (status string) {
	t.Helper()
	inspect(t, container, ".State.Health.Status", &status)
	return status
}
