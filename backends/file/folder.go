package filekv

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxPage is how much is read of a page. Ours are smaller.
	maxPage = 16 << 20
	// maxNumber leaves room above every number that a safe can reach.
	maxNumber = 1 << 62
)

// errTurned means that another write came first: look again.
var errTurned = errors.New("the page has been turned")

// A folder is where a safe is kept. Its state is the name of an empty file, the
// head: the number of the write that it stands since, and the id of a page that
// has the text. A head without a page is a vacant safe.
//
// A write puts a new page beside the old one and renames the head. A rename
// fails if the file is not there any more, and no head ever comes again, so it
// is a compare-and-swap: of those who saw one head, one can rename it.
type folder struct {
	name  string // escaped
	path  string
	temps string
	modes modes
}

// A sheet is what was found in a folder.
type sheet struct {
	// number is that of the head, 0 if there is none.
	number uint64
	page   string // the id of its page, if it has one
	text   []byte
	// odd is set if there is something else in place of the folder or page.
	odd bool
	// strays are pages that belong to no head, or to one that is about to fail, and
	// sightings of the head.
	strays []string
}

// head returns the name of a head.
func head(number uint64, page string) string {
	if page == "" {
		return fmt.Sprintf("%020d", number)
	}
	return fmt.Sprintf("%020d.%s", number, page)
}

// parseHead takes the name of a head apart.
func parseHead(name string) (number uint64, page string, ok bool) {
	digits, page, paged := strings.Cut(name, ".")
	number, err := strconv.ParseUint(digits, 10, 64)
	ok = err == nil && len(digits) == 20 && 0 < number && number < maxNumber && paged == isID(page)
	return number, page, ok
}

// isID reports whether s is an id of a page or a life file (rand.Text).
func isID(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'A' || 'Z' < c) && (c < '2' || '7' < c) {
			return false
		}
	}
	return len(s) == 26
}

// enoughLooks is how often no head has to be found where there is none: on a busy machine four
// looks in a row have missed one that was renamed meanwhile. A folder without a head is damaged,
// and whoever writes to it finds out by a rename(2) that fails.
const enoughLooks = 20

// read returns what is in the folder. A folder that is not there is an error for
// which errors.Is reports fs.ErrNotExist.
//
// A listing is no snapshot: getdents(2) returns early if a signal is pending, as often is
// in a program in Go, and what is renamed before the rest is listed may be missed. So a
// head counts that is listed, a page if it can be opened, and what is missing is looked
// for again.
func (f folder) read() (sheet, error) {
	var before uint64 // the head whose page was missing
	for looks := 1; ; looks++ {
		info, err := os.Lstat(f.path)
		if err != nil {
			return sheet{}, err
		}
		if !info.IsDir() {
			return sheet{}.withOdd(f.path, info.Mode().Type())
		}
		files, err := os.ReadDir(f.path)
		if err != nil {
			return sheet{}, err
		}
		found := sort(files)
		if found.number == 0 && looks < enoughLooks {
			continue
		}
		found, err = f.open(found)
		if !errors.Is(err, fs.ErrNotExist) {
			return found, err
		}
		if found.number == before {
			return found, nil // its page was removed by hand
		}
		before = found.number // or with its head, since another took its place
	}
}

// sort makes a sheet of the files in a folder, without the page's text.
func sort(files []fs.DirEntry) (found sheet) {
	var known int
	for _, file := range files {
		number, page, isHead := parseHead(file.Name())
		switch {
		case isHead && number > found.number:
			found.number, found.page = number, page
		case isID(file.Name()), isSighting(file.Name()):
			found.strays = append(found.strays, file.Name())
			known++
		}
	}
	found.odd = found.number == 0 && len(files) > known
	found.strays = slices.DeleteFunc(found.strays, func(name string) bool { return name == found.page })
	return found
}

// open returns the sheet with the text of its page, if it has one.
func (f folder) open(found sheet) (sheet, error) {
	if found.page == "" {
		return found, nil
	}
	path := filepath.Join(f.path, found.page)
	info, err := os.Lstat(path)
	if err != nil {
		return found, err
	}
	if !info.Mode().IsRegular() {
		return found.withOdd("", info.Mode().Type())
	}
	found.text, err = readSome(path)
	return found, err
}

// withOdd returns the sheet with what somebody has put in place of a folder or a
// page: a file at path, or nothing that can be read.
func (found sheet) withOdd(path string, mode fs.FileMode) (sheet, error) {
	found.odd, found.text = true, []byte(mode.String())
	if !mode.IsRegular() {
		return found, nil
	}
	text, err := readSome(path)
	found.text = text
	return found, err
}
