package run_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/electkv/election/internal/markdown"
	"github.com/electkv/election/internal/testenv"
)

// local is what each host has in /usr/local beside what is there on this machine: elect, which is built
// as the index says, and stand-ins.
var local string

var build = sync.OnceValue(func() error {
	page, err := markdown.Read(filepath.Join(pages, index))
	if err != nil {
		return err
	}
	for name, text := range map[string]string{"systemctl": systemctl, "journalctl": journalctl} {
		if err := os.WriteFile(filepath.Join(local, "bin", name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			return err
		}
	}
	script := "cp bin/elect " + local + "/bin"
	for _, block := range slices.Backward(page.Blocks) {
		script = block.Text + script
	}
	script = "rm -f bin/elect\n" + script // of before
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", page.Path, err, out)
	}
	return nil
})

func TestMain(m *testing.M) {
	testenv.Parallel(8)
	status := 1
	var err error
	local, err = os.MkdirTemp("", "elect-run-")
	if err == nil {
		err = os.Mkdir(filepath.Join(local, "bin"), 0o755)
	}
	if err == nil {
		status = m.Run()
		err = os.RemoveAll(local)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}
