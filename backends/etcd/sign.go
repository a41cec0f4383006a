package etcdkv

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/internal/spare"
	"github.com/electkv/election/kv"
)

func (sf safe) create(ctx context.Context, rec kv.Record) (kv.Record, error) {
	if err := checkNew(rec); err != nil {
		return kv.Record{}, err
	}
	seconds, err := wholeSeconds(rec.TTL)
	if err != nil {
		return kv.Record{}, err
	}
	// Candidates come in crowds, and to be refused costs the cluster a write. Most can be
	// spared it by a read.
	gets := []clientv3.Op{sf.first(1)}
	if !sf.lined() {
		gets = append(gets, sf.gets(sf.start)[1:]...)
	}
	var seen line
	look := func() (err error) {
		if seen, err = sf.read(ctx, gets...); err == nil && len(seen.places) > 0 {
			err = kv.ErrHeld
		}
		return err
	}
	sign := func(ready spare.Lease) (kv.Record, error) {
		for key, pair := range seen.companions {
			if pair.Lease == 0 || kv.Decode(string(pair.Value)).Foreign {
				return kv.Record{}, fmt.Errorf("somebody else's data is at %q, where the record of a plain value belongs: %w", key, kv.ErrHeld)
			}
		}
		return sf.sign(ctx, ready, rec, kv.Record{}, sf.outrun(), func(key string) []clientv3.Cmp { return sf.open(key, seen) })
	}
	ttl := time.Duration(seconds) * time.Second
	if rec.Shared && !rec.Lasting && sf.shares() && sf.fits(rec) {
		return sf.createShared(ctx, ttl, look, sign)
	}
	// The lease is known to live before the record has it. Whoever finds the record, and
	// not the answer to this, trusts it from the start of the call.
	ready, err := sf.spares.Take(ctx, use{sf.start, ttl}, func(ctx context.Context, lease string) error {
		_, err := sf.keepAlive(ctx, lease)
		return err
	}, look)
	if err != nil {
		return kv.Record{}, err
	}
	return sign(ready)
}

// outrun is the error of a create if somebody wrote first.
func (sf safe) outrun() error {
	if sf.plain && !sf.lined() {
		return fmt.Errorf("somebody wrote to %q or %q meanwhile: %w", sf.start, sf.companion(sf.start), kv.ErrHeld)
	}
	return kv.ErrHeld
}

// join puts a record at the end of the line, unless its signature is in line.
func (sf safe) join(ctx context.Context, rec kv.Record) (kv.Record, error) {
	if err := checkNew(rec); err != nil {
		return kv.Record{}, err
	}
	gets := []clientv3.Op{sf.all()}
	if sf.plain {
		gets = append(gets, clientv3.OpGet(sf.companion(sf.start), clientv3.WithPrefix()))
	}
	seen, err := sf.read(ctx, gets...)
	if err != nil {
		return kv.Record{}, err
	}
	var place kv.Record // the first, should there be two
	for _, pair := range seen.places {
		if p := sf.decode(pair, seen); p.Signature == rec.Signature && (place.Token == 0 || p.Token < place.Token) {
			place = p
		}
	}
	if place.Token != 0 {
		return place, nil
	}
	return sf.sign(ctx, spare.Lease{}, rec, kv.Record{}, errTwice, func(key string) []clientv3.Cmp {
		return []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), "=", 0)}
	})
}

// errTwice cannot happen: nobody knows a lease that was just granted.
var errTwice = errors.New("the key of a new lease is taken")

// sign puts a new signature in former's place, if that is given, with the lease that is
// ready, or one granted for it, if all conditions hold, and returns refused if one does
// not. They may depend on the new key. A lease that was refused fades by itself.
func (sf safe) sign(ctx context.Context, lease spare.Lease, rec, former kv.Record, refused error, conditions func(key string) []clientv3.Cmp) (_ kv.Record, err error) {
	if lease.ID == "" {
		if lease, err = sf.grant(ctx, rec.TTL); err != nil {
			return kv.Record{}, err
		}
	}
	next := kv.Record{Signature: rec.Signature, Value: rec.Value, Note: rec.Note, TTL: lease.TTL, Lease: lease.ID}
	now, done, err := sf.put(ctx, next, former, conditions(sf.key(lease.ID))...)
	// The client sends a Txn again after an answer of the kind "cancelled" that
	// was not its own context's. If the safe has the record with the lease of this one,
	// then the first sending was carried out.
	if err == nil && !done && (now.Lease != lease.ID || now.Signature != rec.Signature) {
		return kv.Record{}, refused
	}
	return now, err
}
