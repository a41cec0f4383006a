//go:build linux

package migrate

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv/install"
)

// build vets and compiles all programs of the pages, in a module with the
// requirements of this one, and the command elect. It returns where the executables
// are, each under its program's id.
//
// To link one executable for each would take minutes. There is one that is all of
// them, and goes by the name that it is called by.
func build(t *testing.T, pages map[string]page) string {
	t.Helper()
	module, bin := newModule(t), t.TempDir()
	imports, cases := "", ""
	for _, p := range pages {
		for _, heading := range []string{before, between, after} {
			for _, program := range p.programs(heading, inGo) {
				dir := filepath.Join(module, program.id)
				require.NoError(t, os.Mkdir(dir, 0o700))
				write(t, filepath.Join(dir, "main.go"), program.asPackage(t))
				id := strings.ReplaceAll(program.id, "-", "_")
				imports += fmt.Sprintf("\t%s %q\n", id, modulePath+"/"+program.id)
				cases += fmt.Sprintf("\tcase %q:\n\t\t%s.Main()\n", program.id, id)
				require.NoError(t, os.Symlink("pages", filepath.Join(bin, program.id)))
			}
		}
	}
	write(t, filepath.Join(module, "main.go"), fmt.Sprintf(mainText, imports, cases))
	run(t, module, "go", "vet", "./...")
	run(t, module, "go", "build", "-ldflags=-s -w", "-o", filepath.Join(bin, "pages"), ".")
	run(t, root(t), "go", "build", "-ldflags=-s -w", "-o", filepath.Join(bin, "elect"), "./cmd/elect")
	link(t, bin)
	return bin
}

// asPackage returns the program as one that can be called, on a host whose name is
// in the environment.
func (p program) asPackage(t *testing.T) string {
	t.Helper()
	text := strings.Replace(p.Text, "package main\n", "package page\n", 1)
	text = strings.Replace(text, "\nfunc main() {\n", "\nfunc Main() {\n", 1)
	require.Contains(t, text, "\nfunc Main() {\n", "%s: it has no main", p.id)
	require.Contains(t, text, "os.Hostname()", "%s: it does not ask for its name", p.id)
	text = strings.ReplaceAll(text, "os.Hostname()", `os.Getenv("HOSTNAME"), error(nil)`)
	return text
}

const mainText = `package main

import (
	"log"
	"os"
	"path/filepath"

%s)

func main() {
	switch filepath.Base(os.Args[0]) {
%s	default:
		log.Fatal("there is no program of that name")
	}
}
`

const modulePath = "github.com/electkv/election/test/interop"

// ours are the modules of this repository that a module requires.
var ours = regexp.MustCompile(`(?m)^\tgithub\.com/electkv/election(\S*) v`)

// newModule returns the folder of a module like this one. It is elsewhere, so that
// a test that is killed leaves nothing in the work tree.
func newModule(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join("..", name))
		require.NoError(t, err)
		for _, required := range ours.FindAllSubmatch(text, -1) {
			text = fmt.Appendf(text, "\nreplace github.com/electkv/election%s => %s%[1]s\n", required[1], root(t))
		}
		write(t, filepath.Join(dir, name), string(text))
	}
	return dir
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../..")
	require.NoError(t, err)
	return dir
}

func write(t *testing.T, file, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
}

func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %s: %s", name, args[0], out)
}

// link puts the commands of the pages beside the programs.
func link(t *testing.T, bin string) {
	t.Helper()
	for name, binary := range map[string]install.Binary{"etcdctl": install.Etcdctl, "consul": install.Consul} {
		path, err := binary.Path(t.Context(), t.Output())
		require.NoError(t, err)
		require.NoError(t, os.Symlink(path, filepath.Join(bin, name)))
	}
}
