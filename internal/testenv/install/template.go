package install

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// Template returns a folder in the user's cache whose content fill has made,
// once for each name. It is to be copied, not used. Any number of processes may
// ask at once: one fills the folder, the others wait for it until ctx ends.
func Template(ctx context.Context, name string, fill func(dir string) error) (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, name)
	if isFolder(path) {
		return path, nil
	}
	unlock, err := lock(ctx, path+".lock")
	if err != nil {
		return "", fmt.Errorf("install: wait for somebody else to make %s: %w", name, err)
	}
	defer unlock()
	if isFolder(path) {
		return path, nil
	}
	removeStale(path)
	tmp, err := os.MkdirTemp(cache, name+".build-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	if err := fill(tmp); err != nil {
		return "", fmt.Errorf("install: make %s: %w", name, err)
	}
	return path, os.Rename(tmp, path)
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
