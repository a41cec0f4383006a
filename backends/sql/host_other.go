//go:build !linux

package sqlkv

// thisHost names no boot: the boot clock is the wall clock here, which goes on
// across boots.
func thisHost() (host, error) { return host{boot: "wall clock"}, nil }
