package election_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write what the scenarios come to into their files")

// The scenarios of testdata/succession come to what stands in their files, each
// time, and keep what every election promises. What happens at the same moment may
// happen in any order.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/succession/*.txt")
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
			synctest.Test(t, func(t *testing.T) { got = play(t, s) })
			if *update && !t.Failed() {
				require.NoError(t, os.WriteFile(file, []byte(top+divider+got), 0o644))
				return
			}
			if !sameTrace(want, got) {
				require.Equal(t, want, got, "if this is as it should be: go test . -run TestScenarios -update")
			}
		})
	}
}
