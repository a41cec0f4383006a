package sqlkv

import (
	"database/sql"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"time"
	"unicode/utf8"

	"github.com/electkv/election/kv"
)

// A row is what the table has of a safe.
type row struct {
	unfit fitness
	there bool

	signature sql.Null[[]byte] // NULL: somebody else's row
	value     []byte
	note      []byte
	token     sql.NullInt64
	revision  sql.NullInt64
	ttl       sql.NullInt64 // in µs
	mortal    bool          // it has an expiry in the store
	left      sql.NullInt64 // in µs until then, NULL if nobody here can tell
	alien     string        // not empty: a clock that cannot be compared wrote it, at this state
}

// fitness says whether a server is one to ask.
type fitness int

const (
	fit fitness = iota
	standby
	uncommitted
)

// err says what would be right.
func (f fitness) err() error {
	switch f {
	case fit:
		return nil
	case standby:
		return errors.New("the server is a standby or read only, and may show what is past: want the primary")
	default:
		return errors.New("the session has autocommit off, so that nothing would ever be committed: want autocommit on in the data source")
	}
}

// fields returns where the columns of checkUnexpired belong.
func (r *row) fields() []any {
	return []any{&r.unfit, &r.there, &r.signature, &r.value, &r.note, &r.token, &r.revision, &r.ttl, &r.mortal, &r.left, &r.alien}
}

// empty reports whether the safe was released, or never used.
func (r *row) empty() bool {
	return !r.there || r.signature.Valid && len(r.signature.V) == 0
}

// faded reports whether the store takes the row for expired.
func (r *row) faded() bool { return r.mortal && r.left.Valid && r.left.Int64 <= 0 }

// signed reports whether this package has written the row.
func (r *row) signed() bool {
	return r.signature.Valid && len(r.signature.V) > 0 && utf8.Valid(r.signature.V) && utf8.Valid(r.note) &&
		r.token.Int64 > 0 && r.revision.Int64 > 0 && r.ttl.Int64 > 0 && r.ttl.Int64 <= longest.Microseconds()
}

// record returns what the safe holds, as one whose expiry the judge looks after
// sees it, or ErrVacant. The other judge's record is somebody's lock.
func (r *row) record(j judge) (kv.Record, error) {
	if r.empty() || j == byStore && r.faded() {
		return kv.Record{}, kv.ErrVacant
	}
	if !r.signed() || r.mortal != (j == byStore) {
		return kv.Record{Value: string(r.value), Revision: r.fingerprint(), Foreign: true, Permanent: !r.mortal}, nil
	}
	return kv.Record{
		Signature: string(r.signature.V),
		Value:     string(r.value),
		Note:      string(r.note),
		Token:     uint64(r.token.Int64),
		Revision:  uint64(r.revision.Int64),
		TTL:       time.Duration(r.ttl.Int64) * time.Microsecond,
	}, nil
}

// fingerprint stands in for the revision that a foreign row need not keep.
func (r *row) fingerprint() uint64 {
	h := fnv.New64a()
	for _, part := range [][]byte{r.signature.V, r.value, r.note} {
		_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part)))) // a hash's Write returns no error
		_, _ = h.Write(part)
	}
	for _, n := range []int64{r.token.Int64, r.revision.Int64, r.ttl.Int64} {
		_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(n)))
	}
	return h.Sum64()
}

// written returns rec as a write has left it.
func written(rec kv.Record, token, revision uint64, ttl int64) kv.Record {
	return kv.Record{
		Signature: rec.Signature, Value: rec.Value, Note: rec.Note,
		Token: token, Revision: revision, TTL: time.Duration(ttl) * time.Microsecond,
	}
}
