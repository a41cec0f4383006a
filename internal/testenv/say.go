//go:build unix

package testenv

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// say runs a database's own client, which says one thing to a server and ends. The
// settings of this machine's user stay out of it.
func say(ctx context.Context, client string, args ...string) error {
	cmd := exec.CommandContext(ctx, client, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(client), err, strings.TrimSpace(string(text)))
	}
	return nil
}
