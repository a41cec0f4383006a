package filekv

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

const (
	// maxPage is how much is read of a page. Ours are smaller.
	maxPage = 16 << 20
	// maxNumber leaves room above every number that a safe can reach.
	maxNumber = 1 << 62
)

var (
	// errTurned means that another page has the number already: look again.
	errTurned = errors.New("the page has been turned")
	// errOvertaken means that the page was added, but later ones are there. It
	// was too late to have an effect, or the record has gone on from it.
	errOvertaken = errors.New("overtaken by a later write")
)

// A folder holds the numbered pages of one safe.
type folder struct {
	name  string // escaped
	path  string
	temps string
	modes modes
}

// A sheet is the last page of a folder as it was found.
type sheet struct {
	// number is the page's number, 0 if there is no page.
	number uint64
	text   []byte
	// odd is set if this is no regular file, or no folder has the name.
	odd bool
}

func (f folder) page(number uint64) string {
	return filepath.Join(f.path, fmt.Sprintf("%020d", number))
}

// last returns the last page. A folder that is not there is an error for which
// errors.Is reports fs.ErrNotExist.
func (f folder) last() (sheet, error) {
	for {
		info, err := os.Lstat(f.path)
		if err != nil {
			return sheet{}, err
		}
		if !info.IsDir() {
			return f.odd(0, f.path, info.Mode().Type())
		}
		pages, err := f.pages()
		if err != nil {
			return sheet{}, err
		}
		if len(pages) == 0 {
			return sheet{}, nil
		}
		last := pages[len(pages)-1]
		if !last.mode.IsRegular() {
			return f.odd(last.number, f.page(last.number), last.mode)
		}
		text, err := readSome(f.page(last.number))
		if errors.Is(err, fs.ErrNotExist) {
			continue // a later page is there, or the folder is gone
		}
		return sheet{number: last.number, text: text}, err
	}
}

// odd returns what somebody has put where a folder or a page belongs.
func (f folder) odd(number uint64, path string, mode fs.FileMode) (sheet, error) {
	found := sheet{number: number, text: []byte(mode.String()), odd: true}
	if !mode.IsRegular() {
		return found, nil
	}
	text, err := readSome(path)
	found.text = text
	return found, err
}

// A numbered is a page in a listing.
type numbered struct {
	number uint64
	mode   fs.FileMode
}

// pages returns the folder's pages in order. Names that are not page numbers are
// left alone.
//
// The listing is a snapshot: a folder has few pages, so one getdents(2) returns
// them all, during which the kernel lets nobody change the folder.
func (f folder) pages() ([]numbered, error) {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return nil, err
	}
	pages := make([]numbered, 0, len(entries))
	for _, e := range entries {
		n, err := strconv.ParseUint(e.Name(), 10, 64)
		if err != nil || len(e.Name()) != 20 || n == 0 || n > maxNumber {
			continue
		}
		pages = append(pages, numbered{number: n, mode: e.Type()})
	}
	return pages, nil
}

// found creates the folder with an empty page, if it is not there or has none.
// The page comes with the folder, so that two founders cannot begin to count at
// two numbers. It is numbered by the wall clock, in the hope that the folder's
// predecessor, should somebody have removed one, was never ahead of it.
func (f folder) found() error {
	temp := filepath.Join(f.temps, rand.Text())
	draft := folder{path: temp}
	if err := os.Mkdir(temp, f.modes.folder); err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if err := os.Chmod(temp, f.modes.folder); err != nil {
		return err
	}
	first := draft.page(uint64(max(time.Now().UnixMicro(), 1)))
	if err := writeFile(first, nil, f.modes.file, false); err != nil {
		return err
	}
	err := os.Rename(temp, f.path)
	if isTaken(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return syncDir(filepath.Dir(f.path))
}

// A turn is a page to be added.
type turn struct {
	text []byte // empty for a vacant safe
	// durable is set if the page must survive a crash of the host.
	durable bool
	// still is asked at the last moment whether the page may be added.
	still func() error
}

// add adds page from+1 if from is the last page, in one link(2). It returns
// errTurned, with no effect, if that page is there already.
//
// Somebody who was stopped for long before the link may find the number free
// again, because its page was removed as an old one. Such a page has no effect,
// as a later one is there, and always has been since: the last page is never
// removed. So one more look tells.
func (f folder) add(from uint64, t turn) error {
	temp := filepath.Join(f.temps, rand.Text())
	defer os.Remove(temp)
	if err := writeFile(temp, t.text, f.modes.file, t.durable); err != nil {
		return err
	}
	if err := t.still(); err != nil {
		return err
	}
	err := os.Link(temp, f.page(from+1))
	if errors.Is(err, fs.ErrExist) {
		return errTurned
	}
	if err != nil {
		return err
	}
	if t.durable {
		if err := syncDir(f.path); err != nil {
			return err
		}
	}
	return f.settle(from + 1)
}

// settle removes the pages before the given one, which must be the last.
func (f folder) settle(number uint64) error {
	pages, err := f.pages()
	if err != nil {
		return err
	}
	if len(pages) == 0 || pages[len(pages)-1].number != number {
		return errors.Join(errOvertaken, removeFile(f.page(number)))
	}
	for _, p := range pages[:len(pages)-1] {
		if err := removeFile(f.page(p.number)); err != nil {
			return err
		}
	}
	return nil
}

// removeFile removes a file that others may remove at the same time.
func removeFile(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// writeFile creates a file. The umask has no say in its mode.
func writeFile(path string, text []byte, mode fs.FileMode, durable bool) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err == nil {
		err = file.Chmod(mode)
	}
	if err == nil && durable {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// readSome reads a file up to maxPage.
func readSome(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(file, maxPage))
	return text, errors.Join(err, file.Close())
}
