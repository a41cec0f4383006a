package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/electkv/election/test/deploy/manifest"
)

// Two pods of deploy/kubernetes/sidecar.yaml, as far as an engine without Kubernetes
// can run them: the service, and in its network the sidecar with its own command.
func TestTheServiceBesideTheSidecarStopsBeforeTheNextOneLeads(t *testing.T) {
	dir := t.TempDir()
	program(t, "./examples/sidecar", filepath.Join(dir, "service"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte("FROM scratch\nCOPY service /service\nENTRYPOINT [\"/service\"]\n"), 0o600))
	service := build(t, dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(`
FROM curlimages/curl:8.16.0
COPY --from=elect /elect /usr/local/bin/elect
COPY --from=elect --chown=65532:65532 /var/lib/elect /var/lib/elect
USER 65532:65532
ENV ELECT_STORE=file:///var/lib/elect
ENTRYPOINT ["/usr/local/bin/elect"]
`), 0o600))
	sidecar, store := build(t, dir), volume(t)
	pod := func(name string) (services, elects string, j *journal) {
		services = start(t, service)
		time.Sleep(time.Second) // it listens
		elects = start(t, append([]string{"--network=container:" + services, "--volume=" + store + ":/var/lib/elect", sidecar}, sidecarCommand(t, name)...)...)
		j = newJournal()
		j.follow(t, services, "0")
		j.follow(t, elects, "0")
		return services, elects, j
	}
	_, elect1, first := pod("billing-1")
	led := first.await(t, 0, slack, "a leader", contains("leading token="))
	service2, elect2, second := pod("billing-2")
	second.await(t, 0, slack, "a candidate", waits)

	// The sidecar is told to end.
	docker(t, "stop", "--time=60", elect1)
	next := second.await(t, 0, slack, "the next leader", contains("leading token="))
	requireStopped(t, first, led, next)

	// The sidecar is killed with everything in it: the request breaks off.
	docker(t, "kill", elect2)
	second.await(t, 0, slack, "the end of the work", contains("stopped token="+next.token()))
	docker(t, "start", elect1)
	first.await(t, first.mark(), 15*time.Second+slack, "the next leader", func(l line) bool {
		return strings.Contains(l.text, "leading token=") && l.token() > next.token()
	})
	// The service is told to end while it does not work.
	docker(t, "stop", service2)
	require.Zero(t, exitCode(t, service2))
}

func contains(text string) func(line) bool {
	return func(l line) bool { return strings.Contains(l.text, text) }
}

// requireStopped wants the old leader's service to have stopped when the next begins.
func requireStopped(t *testing.T, j *journal, old, next line) {
	t.Helper()
	stopped := j.await(t, 0, slack, "the end of the work", contains("stopped token="+old.token()))
	require.True(t, stopped.at.Before(next.at), "%v, %v", stopped, next)
}

// sidecarCommand is the sidecar's command in the manifest, after the program's name.
func sidecarCommand(t *testing.T, pod string) []string {
	t.Helper()
	objects, err := manifest.Read(filepath.Join(root(t), "deploy/kubernetes/sidecar.yaml"))
	require.NoError(t, err)
	for _, o := range objects {
		if d, ok := o.(*appsv1.Deployment); ok {
			command := d.Spec.Template.Spec.Containers[1].Command
			require.Equal(t, "elect", command[0])
			words := []string{}
			for _, word := range command[1:] {
				words = append(words, strings.ReplaceAll(word, "$(POD_NAME)", pod))
			}
			return words
		}
	}
	require.FailNow(t, "no Deployment")
	return nil
}
