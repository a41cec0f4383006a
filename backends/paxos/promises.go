package paxoskv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/electkv/election/backends/paxos/internal/lease"
)

// promises keep on disk which counters a member may have promised, so that it
// promises no lower one after a restart, and tokens grow.
type promises struct {
	path string
	// kept is what the file says: nothing above it was ever promised. It is some
	// seconds ahead of the counters in use, which follow the wall clock, so that the
	// disk is written every few seconds at most.
	kept uint64
}

const (
	promisesFile = "promised"
	magic        = "elp1"
	ahead        = 10_000
)

// openPromises reads a member's file. It says whether there was anything in the folder:
// a member whose file was taken away is not a new one.
func openPromises(dir string) (p *promises, used bool, err error) {
	if err := makeFolder(dir); err != nil {
		return nil, false, err
	}
	there, err := os.ReadDir(dir)
	if err != nil {
		return nil, false, err
	}
	p = &promises{path: filepath.Join(dir, promisesFile)}
	text, err := os.ReadFile(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return p, len(there) > 0, nil
	}
	if err != nil {
		return nil, false, err
	}
	if len(text) != 16 || string(text[:4]) != magic || crc32.ChecksumIEEE(text[8:]) != binary.BigEndian.Uint32(text[4:]) {
		return nil, false, fmt.Errorf("%s is damaged: rename it, so that the folder is not empty and the member waits as after every restart; tokens may grow no more if all other members lose theirs", p.path)
	}
	p.kept = binary.BigEndian.Uint64(text[8:])
	if p.kept >= lease.MaxCounter {
		return nil, false, fmt.Errorf("%s says that counters up to %d were promised, and none above %d exists: clocks and use do not lead there, so a holder of a certificate of this cluster sent that one. To mend it, stop all members, withdraw that certificate, rename this file at each member that reports this, and start the members again; tokens then start from the wall clock, so reset services that remember larger ones", p.path, p.kept, uint64(lease.MaxCounter))
	}
	return p, true, nil
}

// makeFolder makes a folder, and those above it, so that they are there after a loss of
// power: a member that finds none may take itself for a new one.
func makeFolder(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	above := filepath.Dir(path)
	if err := makeFolder(above); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncFolder(above)
}

// keep makes sure that the file has the counter, or more, before it returns.
func (p *promises) keep(counter uint64) error {
	if counter <= p.kept {
		return nil
	}
	if counter > lease.MaxCounter {
		return fmt.Errorf("counter %d, where %d is the largest", counter, uint64(lease.MaxCounter))
	}
	next := min(counter+ahead, lease.MaxCounter)
	text := binary.BigEndian.AppendUint64([]byte(magic+"    "), next)
	binary.BigEndian.PutUint32(text[4:], crc32.ChecksumIEEE(text[8:]))
	if err := replace(p.path, text); err != nil {
		return err
	}
	p.kept = next
	return nil
}

// replace puts text into a file so that either it or what was there before is there
// after a loss of power.
func replace(path string, text []byte) error {
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}
