package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheCodeInDocumentsCompiles(t *testing.T) {
	for _, doc := range []string{"README.md", "docs/succession.md"} {
		blocks := regexp.MustCompile("(?ms)^```go\n(.*?)^```").FindAllSubmatch(read(t, filepath.Join(root, doc)), -1)
		require.NotEmpty(t, blocks, "%s shows no code", doc)
		for _, block := range blocks {
			file := filepath.Join(t.TempDir(), "main.go")
			require.NoError(t, os.WriteFile(file, block[1], 0o600))
			vet := exec.CommandContext(t.Context(), "go", "vet", file)
			vet.Dir = root
			out, err := vet.CombinedOutput()
			require.NoError(t, err, "%s: %s", doc, out)
		}
	}
}
