package machine

import "github.com/electkv/election/kv"

// A Ref refers to a record that is never changed, so that copies of a campaign share it, and
// that costs a word where there is none. Compare the records of two: == says only whether they
// share one. The zero Ref refers to the zero record.
type Ref struct{ to *kv.Record }

// RefTo returns a reference to a record.
func RefTo(rec kv.Record) Ref { return Ref{}.At(rec) }

// At returns a reference to a record: the same if it refers to that already.
func (r Ref) At(rec kv.Record) Ref {
	switch {
	case rec == r.Record():
		return r
	case rec == kv.Record{}:
		return Ref{}
	}
	kept := rec // so that rec is not on the heap where it is not kept
	return Ref{&kept}
}

// Record returns the record.
func (r Ref) Record() kv.Record {
	if r.to == nil {
		return kv.Record{}
	}
	return *r.to
}
