//go:build !unix

package stores

import "io/fs"

// isMine trusts that the directory for temporary files is the user's own.
func isMine(fs.FileInfo) bool { return true }
