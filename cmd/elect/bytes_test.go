//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// everyByte are the bytes of which arguments, paths and environments may consist.
func everyByte() string {
	all := make([]byte, 255)
	for i := range all {
		all[i] = byte(i + 1)
	}
	return string(all)
}

func TestRunHandsEveryByteToTheCommand(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	all := everyByte()
	dir := filepath.Join(p.notes, "d\xff\xc3")
	require.NoError(t, os.Mkdir(dir, 0o700))
	// The path has a directory whose name is not UTF-8, as has the working directory.
	path := filepath.Join(dir, "caf\xe9.sh")
	script := "#!/bin/sh\nprintf %s \"$0\" >path; printf %s \"$1\" >argument; printf %s \"$EVERY\" >variable\n"
	require.NoError(t, os.WriteFile(path, []byte(script), 0o700)) //nolint:gosec // it is executed
	for name, command := range map[string]string{"absolute": path, "relative": "./caf\xe9.sh"} {
		t.Run(name, func(t *testing.T) {
			for _, note := range []string{"path", "argument", "variable"} {
				_ = os.Remove(filepath.Join(dir, note))
			}
			cmd := exec.Command(elect, "run", "--store", p.store, "job", "--", command, all)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "EVERY="+all)
			require.Zero(t, startCommand(t, cmd).status(t))
			for note, want := range map[string]string{"path": command, "argument": all, "variable": all} {
				got, err := os.ReadFile(filepath.Join(dir, note))
				require.NoError(t, err)
				require.Equal(t, want, string(got), note)
			}
		})
	}
}
