package consulkv

import (
	"sync"

	"github.com/electkv/election/kv"
)

// mostIndexes is how many indexes are remembered at most. One that was forgotten is read again.
const mostIndexes = 1 << 16

// Indexes are the ModifyIndexes of keys with records whose revision is another number: that in
// their text (see entry). They were seen when the keys were read.
type indexes struct {
	mu sync.Mutex
	of map[string]sighted
}

// A sighted record is one that was seen at its key when that had the index.
type sighted struct {
	signature       string
	token, revision uint64
	index           uint64
}

// note takes in what a key holds.
func (x *indexes) note(key string, e entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e.rec.Revision == e.version.key {
		delete(x.of, key)
		return
	}
	if x.of == nil || len(x.of) >= mostIndexes {
		x.of = make(map[string]sighted)
	}
	x.of[key] = sighted{e.rec.Signature, e.rec.Token, e.rec.Revision, e.version.key}
}

// forget takes in that a key does not hold the record any more that its owner had there.
func (x *indexes) forget(key string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.of, key)
}

// index returns the index that proves that a key holds the record. If it was not seen, that is
// the revision: no write of this package has its own index in its text but as the revision that
// the text tells of, so a key with this index holds the record or nothing that looks like it.
func (x *indexes) index(key string, rec kv.Record) uint64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.of[key]
	if s.signature == rec.Signature && s.token == rec.Token && s.revision == rec.Revision {
		return s.index
	}
	return rec.Revision
}
