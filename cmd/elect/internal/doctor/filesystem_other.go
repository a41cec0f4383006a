//go:build !linux

package doctor

func fileSystem(string) string { return "a local file system" }
