package stores

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/electkv/election/internal/localfs"
)

// absent says that there is nothing yet at the path of a store, or nothing if there is.
func absent(path string) string {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Sprintf("%s does not exist yet: nobody has stood for election there", path)
	}
	return ""
}

// fileSystem says whether locks and renames in a directory mean the same to all who
// use it.
func fileSystem(dir string) Finding {
	kind, err := localfs.Of(dir)
	switch {
	case err != nil:
		return Finding{Warn, "file system", err.Error(), "only on a local one are all of its users processes of one kernel", "use a directory on a disk of this host"}
	case !kind.Local:
		return Finding{
			Warn, "file system", kind.Name + ", which is not known to be local",
			"if another kernel mounts it too, locks of one may mean nothing to the other, and two may lead or damage a database",
			"use a directory on a disk of this host, or a server for candidates on several",
		}
	}
	return Finding{Level: OK, Subject: "file system", Found: kind.Name}
}
