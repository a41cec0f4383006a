package etcdkv

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/kv"
)

// A line is what was read of a safe, as it was at one revision of the store.
type line struct {
	revision   int64
	places     map[string]*mvccpb.KeyValue // by key
	companions map[string]*mvccpb.KeyValue // by key; nil if there are none
}

// head returns the place that was created first, which is what the safe holds,
// or nil. The order of the keys themselves means nothing.
func (l *line) head() *mvccpb.KeyValue {
	var head *mvccpb.KeyValue
	for _, pair := range l.places {
		if head == nil || pair.CreateRevision < head.CreateRevision ||
			pair.CreateRevision == head.CreateRevision && string(pair.Key) < string(head.Key) {
			head = pair
		}
	}
	return head
}

// front returns the line without those that stand behind the first.
func (l *line) front() line {
	front := line{revision: l.revision}
	if head := l.head(); head != nil {
		front.places = map[string]*mvccpb.KeyValue{string(head.Key): head}
	}
	return front
}

// apply carries changes out. One message has all changes of a revision, so that
// the line is then as it was at the last one's.
func (l *line) apply(events []*mvccpb.Event) {
	for _, event := range events {
		key := string(event.Kv.Key)
		l.revision = event.Kv.ModRevision
		if event.Type == mvccpb.DELETE {
			delete(l.places, key)
		} else {
			l.places[key] = event.Kv
		}
	}
}

// first reads up to n places, from the head on.
func (sf safe) first(n int64) clientv3.Op {
	return clientv3.OpGet(sf.start, clientv3.WithRange(sf.end), clientv3.WithLimit(n),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
}

// all reads every place.
func (sf safe) all() clientv3.Op {
	return clientv3.OpGet(sf.start, clientv3.WithRange(sf.end))
}

// read carries reads out at one revision, in one request.
func (sf safe) read(ctx context.Context, gets ...clientv3.Op) (line, error) {
	if len(gets) == 1 {
		resp, err := sf.client.Do(ctx, gets[0])
		if err != nil {
			return line{}, err
		}
		return sf.sort(resp.Get().Header.Revision, resp.Get().Kvs), nil
	}
	resp, err := sf.client.Txn(ctx).Then(gets...).Commit()
	if err != nil {
		return line{}, err
	}
	return sf.line(resp), nil
}

// line returns what the reads of a Txn have shown.
func (sf safe) line(resp *clientv3.TxnResponse) line {
	var pairs []*mvccpb.KeyValue
	for _, r := range resp.Responses {
		pairs = append(pairs, r.GetResponseRange().Kvs...)
	}
	return sf.sort(resp.Header.Revision, pairs)
}

// sort tells places and companions apart.
func (sf safe) sort(revision int64, pairs []*mvccpb.KeyValue) line {
	l := line{revision: revision, places: make(map[string]*mvccpb.KeyValue)}
	for _, pair := range pairs {
		switch key := string(pair.Key); {
		case sf.has(key):
			l.places[key] = pair
		case l.companions == nil:
			l.companions = map[string]*mvccpb.KeyValue{key: pair}
		default:
			l.companions[key] = pair
		}
	}
	return l
}

// held returns the record at the head of the line, or [kv.ErrVacant]. The head's
// companion is known only now; it is read as it was at the line's revision, or
// the error is [rpctypes.ErrCompacted].
func (sf safe) held(ctx context.Context, l line) (kv.Record, error) {
	head := l.head()
	if head == nil {
		return kv.Record{}, kv.ErrVacant
	}
	if !sf.plain {
		return sf.decode(head, l), nil
	}
	companion := clientv3.OpGet(sf.companion(string(head.Key)), clientv3.WithRev(l.revision))
	beside, err := sf.read(ctx, companion)
	if err != nil {
		return kv.Record{}, err
	}
	return sf.decode(head, beside), nil
}

// look returns what the safe holds, linearizably, or [kv.ErrVacant].
func (sf safe) look(ctx context.Context) (kv.Record, error) {
	for {
		l, err := sf.read(ctx, sf.first(1))
		if err != nil {
			return kv.Record{}, err
		}
		rec, err := sf.held(ctx, l)
		if !errors.Is(err, rpctypes.ErrCompacted) {
			return rec, err
		}
	}
}

// A standing is a record where it was found in line.
type standing struct {
	kv.Record
	first bool // the safe holds it
	alone bool // nobody else is in line
}

// find returns the place of rec in line, perhaps with another value, or else
// [kv.ErrStale]. Keys of others with the same text are not it: a place is known
// by its lease too.
func (sf safe) find(ctx context.Context, rec kv.Record) (standing, error) {
	own := sf.key(rec.Lease)
	gets := []clientv3.Op{sf.first(2)}
	if beside := sf.gets(own); sf.lined() {
		gets = append(gets, beside...)
	} else {
		gets = append(gets, beside[1:]...)
	}
	l, err := sf.read(ctx, gets...)
	if err != nil {
		return standing{}, err
	}
	pair := l.places[own]
	if pair == nil {
		return standing{}, kv.ErrStale
	}
	now := sf.decode(pair, l)
	if !now.Owns(rec) {
		return standing{}, kv.ErrStale
	}
	return standing{Record: now, first: pair == l.head(), alone: len(l.places) == 1}, nil
}
