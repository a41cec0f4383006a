//go:build unix

package storeurl

import (
	"io/fs"
	"os"
	"syscall"
)

func isMine(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}
