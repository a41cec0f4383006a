package filekv

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// found creates the folder with a first head, if it is not there or is empty. The
// head comes with the folder, so that two founders cannot begin to count at two
// numbers. It is numbered by the wall clock, in the hope that the folder's
// predecessor, should somebody have removed one, was never ahead of it.
func (f folder) found() error {
	temp := filepath.Join(f.temps, rand.Text())
	if err := os.Mkdir(temp, f.modes.folder); err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if err := os.Chmod(temp, f.modes.folder); err != nil {
		return err
	}
	first := head(uint64(max(time.Now().UnixMicro(), 1)), "")
	if err := writeFile(filepath.Join(temp, first), nil, f.modes.file, false); err != nil {
		return err
	}
	err := os.Rename(temp, f.path)
	if isTaken(err) && syscall.Rmdir(f.path) == nil {
		return nil // it was empty; look again
	}
	if isTaken(err) {
		return f.checkHead()
	}
	if err != nil {
		return err
	}
	return syncDir(filepath.Dir(f.path))
}

// checkHead reports that the folder is there but has lost its head. One in which only
// sightings are left is emptied.
func (f folder) checkHead() error {
	found, err := f.read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // look again
	}
	if err == nil && found.number == 0 && !found.odd {
		return f.clear(found.strays)
	}
	return err
}

// clear removes sightings of a head that is gone. Pages are left to people.
func (f folder) clear(strays []string) error {
	for _, stray := range strays {
		if !isSighting(stray) {
			return fmt.Errorf("%s has files but no head; it has to be removed", f.path)
		}
	}
	for _, sighting := range strays {
		if err := removeFile(filepath.Join(f.path, sighting)); err != nil {
			return err
		}
	}
	return nil // look again
}

// A turn is what a write does to a folder.
type turn struct {
	text []byte // of the new page; empty for a vacant safe
	// durable is set if the write must survive a crash of the host.
	durable bool
	// still is asked at the last moment whether to go on.
	still func() error
}

// turn replaces what was found by a new page, in one rename(2) of the head. It
// returns errTurned, with no effect, if the head is not there any more.
func (f folder) turn(found sheet, t turn) error {
	var page string
	if len(t.text) > 0 {
		page = rand.Text()
		defer func() {
			if page != "" {
				_ = os.Remove(filepath.Join(f.path, page)) // the next write may
			}
		}()
		if err := f.put(page, t); err != nil {
			return turned(err)
		}
	}
	if err := t.still(); err != nil {
		return err
	}
	old, next := head(found.number, found.page), head(found.number+1, page)
	if err := os.Rename(filepath.Join(f.path, old), filepath.Join(f.path, next)); err != nil {
		return turned(err)
	}
	page = ""
	f.sweep(found)
	if t.durable {
		return syncDir(f.path)
	}
	return nil
}

// put writes a page, which nobody heeds before the head names it.
func (f folder) put(page string, t turn) error {
	temp := filepath.Join(f.temps, page)
	defer os.Remove(temp)
	if err := writeFile(temp, t.text, f.modes.file, t.durable); err != nil {
		return err
	}
	return os.Rename(temp, filepath.Join(f.path, page))
}

// turned returns errTurned for an error that says that something is not there.
func turned(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errTurned
	}
	return err
}

// sweep removes the pages that were found by a write that has succeeded: the old
// one, and those of writers that have died, or that saw the head that is gone now.
// What cannot be removed is met again by the next write.
func (f folder) sweep(found sheet) {
	for _, page := range append(found.strays, found.page) {
		if page != "" {
			_ = os.Remove(filepath.Join(f.path, page))
		}
	}
}
