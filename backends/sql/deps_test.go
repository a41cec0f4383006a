package sqlkv_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAProgramThatUsesOneDatabaseLinksNoDriverOfAnother asks what this package brings
// along: whatever driver a program needs, it imports itself.
func TestAProgramThatUsesOneDatabaseLinksNoDriverOfAnother(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", "github.com/electkv/election/backends/sql").Output()
	require.NoError(t, err)
	found := 0
	for dep := range strings.FieldsSeq(string(out)) {
		for _, driver := range []string{"github.com/jackc/", "github.com/go-sql-driver/", "modernc.org/"} {
			require.False(t, strings.HasPrefix(dep, driver), "it brings along %s", dep)
		}
		if strings.HasPrefix(dep, "github.com/electkv/election/") {
			found++
		}
	}
	require.Greater(t, found, 2, "this package and kv are among them")
}
