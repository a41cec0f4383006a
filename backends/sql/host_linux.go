package sqlkv

import (
	"errors"
	"io/fs"
	"os"
	"strings"
)

// thisHost names what the boot clock's readings can be compared within: a boot of
// the host, and a time namespace (time_namespaces(7)).
func thisHost() (host, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return host{}, err
	}
	space, err := os.Readlink("/proc/self/ns/time")
	if errors.Is(err, fs.ErrNotExist) { // a kernel without time namespaces
		err = nil
	}
	return host{boot: strings.TrimSpace(string(boot)), timens: space}, err
}
