package filekv

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"time"

	"github.com/electkv/election/kv"
)

// pageVersion is the version of the first line of a page.
const pageVersion = 1

// A page is what a held safe holds. Its text is a line of JSON with the fields
// below, and a line with the text form of the record.
//
// There is no checksum: a page is complete before a head names it, so only a
// crash of the whole host can tear one. Then the first line, which fits into the
// first block, still says that the page is from another boot.
type page struct {
	Version int `json:"filekv"`
	// Clock names the clock of Deadline: host, boot and time namespace.
	Clock string `json:"clock"`
	// Deadline is when the record fades.
	Deadline time.Duration `json:"deadline_ns"`
	// Until is when a lasting record fades by the wall clock, in Unix milliseconds, for
	// processes that cannot read Clock. Zero in all other records.
	Until int64 `json:"until_ms,omitempty"`
	// TTL is the record's, for processes that cannot compare their clock with Clock. It is
	// here since a crash may tear the text of the record.
	TTL time.Duration `json:"ttl_ns"`
	// Life is the life file of the process that holds the record.
	Life string `json:"life"`
	// Name is the escaped name of the safe.
	Name string `json:"name"`

	body []byte
}

// writePage returns the text of the page that takes the safe f to next.
func writePage(f folder, next step) []byte {
	head, err := json.Marshal(page{
		Version:  pageVersion,
		Clock:    next.clock,
		Deadline: next.deadline,
		Until:    next.until,
		TTL:      next.rec.TTL,
		Life:     next.life,
		Name:     f.name,
	})
	if err != nil {
		panic(fmt.Sprintf("filekv: a page always has a text: %v", err))
	}
	return fmt.Appendf(head, "\n%s\n", kv.Encode(next.rec))
}

// readPage reads the first line of a page of the folder f, and reports whether
// it is one of ours.
func readPage(f folder, text []byte) (page, bool) {
	head, body, _ := bytes.Cut(text, []byte("\n"))
	var p page
	err := json.Unmarshal(head, &p)
	if err != nil || p.Version != pageVersion || !isID(p.Life) || shorten(p.Name) != filepath.Base(f.path) {
		return page{}, false
	}
	p.body = body
	return p, true
}

// record returns the record on the page under a head with the given number, and
// reports whether it is one of ours.
func (p page) record(number uint64) (kv.Record, bool) {
	rec := kv.Decode(string(bytes.TrimSuffix(p.body, []byte("\n"))))
	rec.Lease = leaseOf(p.Life, folder{name: p.Name})
	// A write never takes a number from the future.
	ours := !rec.Foreign && 0 < rec.Token && rec.Token <= number && 0 < rec.Revision && rec.Revision <= number
	return rec, ours
}

// foreign returns the record for what somebody else has put into a safe.
func foreign(found sheet) kv.Record {
	h := fnv.New64a()
	fmt.Fprint(h, found.number, " ")
	h.Write(found.text)
	return kv.Record{Value: string(found.text), Revision: h.Sum64(), Foreign: true, Permanent: true}
}
