package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/seam"
)

// Compare plays the scripts of a folder. Each comes to the trace that stands below it,
// each time, and keeps what every election promises; what happens at the same moment
// may happen in any order. Told to update, it writes the traces anew.
func Compare(t *testing.T, engine seam.Engine, folder string, update bool) {
	files, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			top, want, _ := strings.Cut(string(text), divider)
			s, err := parseScript(top)
			require.NoErrorf(t, err, "%s", file)
			var got string
			synctest.Test(t, func(t *testing.T) { got = play(t, engine, s) })
			if update && !t.Failed() {
				require.NoError(t, os.WriteFile(file, []byte(top+divider+got), 0o644))
				return
			}
			if !sameTrace(want, got) {
				require.Equal(t, want, got, "if this is as it should be: go test . -run TestScenarios -update")
			}
		})
	}
}
