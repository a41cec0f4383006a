package manifest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/electkv/election/test/deploy/manifest"
)

func TestKubernetesKnowsEveryFieldOfTheManifests(t *testing.T) {
	files, err := filepath.Glob("../../../deploy/kubernetes/*.yaml")
	require.NoError(t, err)
	require.Len(t, files, 3)
	for _, file := range files {
		objects, err := manifest.Read(file)
		require.NoError(t, err)
		require.Len(t, objects, 2, file)
		secret, deployment := objects[0].(*corev1.Secret), objects[1].(*appsv1.Deployment)
		require.Contains(t, secret.StringData, "ELECT_STORE")
		pod := deployment.Spec.Template
		require.Equal(t, deployment.Spec.Selector.MatchLabels, pod.Labels, "the API server refuses anything else")
		reading := 0
		for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
			require.NotEmpty(t, container.Image)
			require.False(t, *container.SecurityContext.AllowPrivilegeEscalation)
			for _, source := range container.EnvFrom {
				require.Equal(t, secret.Name, source.SecretRef.Name)
				reading++
			}
		}
		require.Equal(t, 1, reading, "%s: containers that know the store", file)
	}
}

// The probes ask at the port at which elect answers, and for paths that it knows.
func TestTheProbesAskWhereElectAnswers(t *testing.T) {
	objects, err := manifest.Read("../../../deploy/kubernetes/http.yaml")
	require.NoError(t, err)
	elect := objects[1].(*appsv1.Deployment).Spec.Template.Spec.InitContainers[0]
	require.Contains(t, elect.Args, "--http=:4040")
	require.Equal(t, int32(4040), elect.Ports[0].ContainerPort)
	require.Equal(t, corev1.ContainerRestartPolicyAlways, *elect.RestartPolicy, "else the service never starts")
	for path, probe := range map[string]*corev1.Probe{"/livez": elect.LivenessProbe, "/readyz": elect.ReadinessProbe} {
		require.Equal(t, path, probe.HTTPGet.Path)
		require.Equal(t, elect.Ports[0].Name, probe.HTTPGet.Port.StrVal)
	}
}

func TestAFieldThatKubernetesDoesNotKnowIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "wrong.yaml")
	require.NoError(t, os.WriteFile(file, []byte("apiVersion: v1\nkind: Secret\nstringdata: {}\nsecrets: 1\n"), 0o600))
	_, err := manifest.Read(file)
	require.ErrorContains(t, err, `unknown field "secrets"`)
}
