package install

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// enabled returns the links below etc by which systemd, or init, starts services with the
// machine.
func enabled(etc string) map[string]bool {
	links := map[string]bool{}
	for _, pattern := range []string{"systemd/system/*.wants/*", "rc[2-5S].d/S*"} {
		found, _ := filepath.Glob(filepath.Join(etc, pattern))
		for _, link := range found {
			links[link] = true
		}
	}
	return links
}

// disable removes the links that were not there before.
func disable(log io.Writer, etc string, before map[string]bool) {
	for link := range enabled(etc) {
		if before[link] {
			continue
		}
		if err := os.Remove(link); err != nil {
			fmt.Fprintln(log, "a service stays enabled:", err)
		} else if strings.HasPrefix(link, filepath.Join(etc, "systemd")) {
			fmt.Fprintln(log, "not enabled:", filepath.Base(link))
		}
	}
}
