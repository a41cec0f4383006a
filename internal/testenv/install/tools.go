package install

import (
	"os/exec"
	"slices"
)

// MissingTools returns the packages, by their names in Debian, of the commands
// that tests use for network namespaces and disks and that are not in PATH.
func MissingTools() []string {
	var missing []string
	for _, tool := range []struct{ command, in string }{
		{"ip", "iproute2"},
		{"nft", "nftables"},
		{"nsenter", "util-linux"},
		{"unshare", "util-linux"},
		{"mount", "mount"},
		{"umount", "mount"},
	} {
		if _, err := exec.LookPath(tool.command); err != nil && !slices.Contains(missing, tool.in) {
			missing = append(missing, tool.in)
		}
	}
	return missing
}
