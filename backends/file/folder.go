package filekv

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
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

// read returns what is in the folder. A folder that is not there is an error for
// which errors.Is reports fs.ErrNotExist.
func (f folder) read() (sheet, error) {
	for {
		info, err := os.Lstat(f.path)
		if err != nil {
			return sheet{}, err
		}
		if !info.IsDir() {
			return sheet{}.withOdd(f.path, info.Mode().Type())
		}
		// A snapshot: a folder has few files, so one getdents(2) returns them
		// all, during which the kernel lets nobody change the folder.
		files, err := os.ReadDir(f.path)
		if err != nil {
			return sheet{}, err
		}
		found, err := f.sort(files)
		if !errors.Is(err, fs.ErrNotExist) {
			return found, err
		}
		// The page went with its head in the meantime.
	}
}

// sort makes a sheet of the files in the folder.
func (f folder) sort(files []fs.DirEntry) (sheet, error) {
	var found sheet
	modes := make(map[string]fs.FileMode) // of what may be a page
	var sightings []string
	for _, file := range files {
		number, page, ok := parseHead(file.Name())
		if ok && number > found.number {
			found.number, found.page = number, page
		}
		if isID(file.Name()) {
			modes[file.Name()] = file.Type()
		}
		if isSighting(file.Name()) {
			sightings = append(sightings, file.Name())
		}
	}
	if found.number == 0 && len(files) > len(modes)+len(sightings) {
		found.odd = true
		return found, nil
	}
	mode, ok := modes[found.page]
	delete(modes, found.page)
	found.strays = append(slices.Collect(maps.Keys(modes)), sightings...)
	if !ok { // a vacant safe, or its page was removed by hand
		return found, nil
	}
	if !mode.IsRegular() {
		return found.withOdd("", mode)
	}
	text, err := readSome(filepath.Join(f.path, found.page))
	found.text = text
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
