package memkv

import (
	"context"

	"github.com/electkv/election/kv"
)

// Queue is a [Store] in which candidates wait in line: a [kv.Queue]. Use [NewQueue] to make
// one.
type Queue struct{ Store }

var _ kv.Queue = (*Queue)(nil)

// NewQueue returns a store in which all lines are empty.
func NewQueue() *Queue {
	q := &Queue{}
	q.lines = true
	q.init()
	return q
}

// Join implements [kv.Queue].
func (q *Queue) Join(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	if err := check(name, rec); err != nil {
		return kv.Record{}, err
	}
	return q.step(ctx, name, func(sf *safe) (kv.Record, error) {
		for _, p := range sf.line {
			if p.rec.Signature == rec.Signature {
				return p.rec, nil
			}
		}
		return sf.add(q.sign(rec)), nil
	})
}

// Stay implements [kv.Queue].
func (q *Queue) Stay(ctx context.Context, name string, rec kv.Record) (place kv.Record, leads bool, err error) {
	return q.stay(ctx, name, rec)
}

// PutLast puts value at the end of the line, without an expiry, as another program that
// waits in the same line would.
func (q *Queue) PutLast(name, value string) {
	q.strange(name, value, true)
}
