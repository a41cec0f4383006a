package run_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/electkv/election/internal/testenv"
)

// A pod is what the manifests have of one.
type pod struct {
	Kind       string
	StringData map[string]string `yaml:"stringData"`
	Spec       struct {
		Template struct {
			Spec struct {
				InitContainers []container `yaml:"initContainers"`
				Containers     []container
			}
		}
	}
}

type container struct {
	Name          string
	Command, Args []string
}

// No cluster is here to apply a manifest to. test/deploy/manifest checks that Kubernetes knows each field
// of the manifests, and test/deploy/engine runs the sidecar on a docker engine. Here kubectl is a
// stand-in: what apply is given is read, and its elect runs on hosts for pods.
func TestTheKubernetesPage(t *testing.T) {
	t.Parallel()
	s := play(t, "kubernetes.md")
	l := newLan(t, map[string]string{"etcd-1:2379": testenv.StartEtcd(t).Addr()}, "billing-1", "billing-2", "billing-3")
	require.NoError(t, os.Remove(filepath.Join(l.dir, "deploy")))
	require.NoError(t, os.CopyFS(filepath.Join(l.dir, "deploy"), os.DirFS("../../deploy")))
	l.script(filepath.Join(l.dir, "bin/kubectl"), `[ "$1 $2" = "apply -f" ] && cp "$3" applied.yaml`)
	l.requireBeside(s.next("sh"))

	environment, commands := l.apply("applied.yaml")
	require.Len(t, commands, 1)
	for _, h := range l.hosts {
		h.program("/usr/local/bin/kubectl", environment+`while [ "$1" != -- ]; do shift; done; shift 2; exec elect "$@"`)
		h.runs(environment + strings.ReplaceAll(commands[0], "$(POD_NAME)", h.name) + " >log 2>&1 &")
	}
	leader, _ := l.leader(environment + "elect status billing")
	s.console(leader.says)
	s.console(leader.says)

	// The other manifests' elect takes its flags, and elects.
	for _, name := range []string{"entrypoint", "sidecar"} {
		require.Contains(t, s.page.Text, "`"+name+".yaml`")
		environment, commands := l.apply("deploy/kubernetes/" + name + ".yaml")
		require.Len(t, commands, 1)
		elect, _, found := strings.Cut(commands[0], " 'billing' '--' ")
		require.True(t, found, commands)
		out := l.hosts[0].runs(environment + elect + " --once " + name + " -- echo it leads")
		require.Contains(t, out, "it leads")
	}

	// What a newcomer gets wrong.
	for _, mistake := range []string{"ELECT_STORE=etcd-1:2379", "ELECT_STORE=etcd://etcd-9:2379", "HOME=/proc ELECT_STORE="} {
		leader.runs("rm -f mistake.log; " + mistake + " elect run billing -- true >mistake.log 2>&1 &")
		s.told(leader.eventually("grep -E 'unknown|waiting for|name another' mistake.log"))
	}
}

// apply reads a manifest: the environment that its Secret makes, and the commands of elect in it, with
// which containers start.
func (l *lan) apply(file string) (environment string, commands []string) {
	l.Helper()
	text, err := os.ReadFile(filepath.Join(l.dir, file))
	require.NoError(l, err)
	for part := range strings.SplitSeq(string(text), "\n---\n") {
		var p pod
		require.NoError(l, yaml.Unmarshal([]byte(part), &p))
		for name, value := range p.StringData {
			environment += fmt.Sprintf("export %s='%s'\n", name, value)
		}
		spec := p.Spec.Template.Spec
		for _, c := range append(spec.InitContainers, spec.Containers...) {
			words := append(c.Command, c.Args...)
			if len(words) == 0 {
				continue
			}
			if len(c.Command) == 0 {
				words = append([]string{"elect"}, words...) // the entry point of its image
			}
			commands = append(commands, "'"+strings.Join(words, "' '")+"'")
		}
	}
	return environment, commands
}
