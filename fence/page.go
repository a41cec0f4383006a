package fence

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// A page is the file in which a fence keeps its largest token, and the lock that
// shows that it is open. The file is only ever replaced as a whole, so the lock
// is on a file of its own.
type page struct {
	path string
	lock *flock.Flock
}

// openPage locks the file and returns the token in it, 0 if there is no file.
//
// It writes what it has read, as an earlier process may have died between the
// rename and the sync of the folder: then what is read here could be gone after
// a power cut. That also shows at once whether the file can be written.
func openPage(path string) (*page, uint64, error) {
	path, err := resolve(path)
	if err != nil {
		return nil, 0, fmt.Errorf("fence: %w", err)
	}
	p := &page{path: path, lock: flock.New(path + ".lock")}
	got, err := p.lock.TryLock()
	if err != nil {
		return nil, 0, fmt.Errorf("fence: lock %s: %w", p.lock.Path(), err)
	}
	if !got {
		return nil, 0, fmt.Errorf("%w: %s is open already, in this process or in another: open it once, and share the fence", ErrInUse, path)
	}
	token, err := p.read()
	if err == nil {
		err = p.write(token)
	}
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("fence: %w", err), p.close())
	}
	return p, token, nil
}

// resolve follows symbolic links, so that a file has one name and one lock, and
// refuses what can be no fence's file, so that no lock is left beside it.
func resolve(path string) (string, error) {
	if path == "" {
		return "", errors.New("no path: want that of the file in which the fence keeps its token")
	}
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		return real, regular(real)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if _, err := os.Lstat(path); err == nil {
		return "", fmt.Errorf("%s is a symbolic link to a file that is not there: if there never was one, make the link's target or remove the link", path)
	}
	folder, err := filepath.EvalSymlinks(filepath.Dir(path))
	return filepath.Join(folder, filepath.Base(path)), err
}

// regular refuses what is there and is no file: a folder, a pipe, a device.
func regular(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file: give the fence a file of its own", path)
	}
	return err
}

// read returns the token in the file, 0 if there is no file.
func (p *page) read() (uint64, error) {
	file, err := os.Open(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(file, maxText))
	if err != nil {
		return 0, err
	}
	token, ok := decode(string(text))
	if !ok {
		return 0, fmt.Errorf("%s is damaged, or not the file of a fence: if it belongs to something else, give the fence another path; "+
			"if it was the fence's, put back the backup that is as old as the data that it guards, "+
			"or stop all writers, remove the file, and let the leader's token be admitted before any other", p.path)
	}
	return token, nil
}

// write replaces the file by one that has the token, so that a crash at any
// moment leaves the old one or the new one. When it returns nil, the new one
// stays. After an error either may be there.
func (p *page) write(token uint64) error {
	temp := p.path + ".new"
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := writeFile(temp, encode(token)); err != nil {
		os.Remove(temp)
		return err
	}
	if err := os.Rename(temp, p.path); err != nil {
		os.Remove(temp)
		return err
	}
	return syncDir(filepath.Dir(p.path))
}

func (p *page) close() error {
	if err := p.lock.Unlock(); err != nil {
		return fmt.Errorf("fence: unlock %s: %w", p.lock.Path(), err)
	}
	return nil
}

// writeFile makes a file that is not there yet, and waits until its text is on
// disk.
func writeFile(path, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

const (
	format  = "election fence 1: token %d, crc32 %08x\n"
	maxText = 1 << 10 // more than the longest line has
)

// encode returns the line that keeps a token: for people, and with a sum that
// finds damage.
func encode(token uint64) string {
	sum := crc32.ChecksumIEEE(fmt.Appendf(nil, "%d", token))
	return fmt.Sprintf(format, token, sum)
}

// decode takes what encode returns, to the byte.
func decode(text string) (token uint64, ok bool) {
	var sum uint32
	if _, err := fmt.Sscanf(text, format, &token, &sum); err != nil {
		return 0, false
	}
	return token, text == encode(token)
}
