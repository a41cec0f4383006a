package etcdkv

import (
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/kv"
)

// longestText bounds the text form of records; see longestKey.
const longestText = 1 << 20

// decode returns the record that lies at a place; its companion, if it has one,
// is in the line.
//
// In a line the key's name tells the lease. A key without that lease is none of
// ours, whatever its text: it would be in everybody's way when its owner's lease
// is gone.
func (sf safe) decode(pair *mvccpb.KeyValue, l line) kv.Record {
	key, lease := string(pair.Key), leaseName(clientv3.LeaseID(pair.Lease))
	rec := kv.Decode(string(pair.Value))
	switch {
	case sf.plain:
		rec = accompanied(pair, l.companions[sf.companion(key)])
	case sf.observed:
		rec = observed(pair)
	}
	if key != sf.key(lease) {
		rec = foreign(pair)
	}
	if sf.lined() {
		rec.Token = uint64(pair.CreateRevision)
	}
	rec.Lease, rec.Permanent = lease, pair.Lease == 0 && (rec.Foreign || !sf.observed)
	return stored(rec, pair.ModRevision)
}

// accompanied returns the record of a value that stands alone. The companion
// proves it if one Txn was the last to write both, and they live equally long.
// A companion that is there alone, or beside another's value, proves nothing.
func accompanied(pair, companion *mvccpb.KeyValue) kv.Record {
	if companion == nil || companion.ModRevision != pair.ModRevision || companion.Lease != pair.Lease {
		return foreign(pair)
	}
	rec := kv.Decode(string(companion.Value))
	if rec.Foreign {
		return foreign(pair)
	}
	rec.Value = string(pair.Value)
	return rec
}

// observed returns the record of which observers judge whether it has expired. What
// has a lease is none: etcd would end it by a judgement of its own.
func observed(pair *mvccpb.KeyValue) kv.Record {
	if pair.Lease != 0 {
		return foreign(pair)
	}
	return kv.DecodeObserved(string(pair.Value))
}

func foreign(pair *mvccpb.KeyValue) kv.Record {
	return kv.Record{Value: string(pair.Value), Foreign: true}
}

// stored returns a record as it stands once the write with that ModRevision has
// stored its text. If it has no token yet, then that write has brought the
// signature in, and the token is its revision.
func stored(rec kv.Record, revision int64) kv.Record {
	rec.Revision = uint64(revision)
	if rec.Token == 0 && !rec.Foreign {
		rec.Token = rec.Revision
	}
	return rec
}

// encode returns the text of a record. A record that has a token, which is one
// whose value changes, takes it along, unless its key's create revision tells
// it. A value that stands alone is left out.
func (sf safe) encode(rec kv.Record) string {
	rec.Revision = 0
	if sf.lined() {
		rec.Token = 0
	}
	if sf.plain {
		rec.Value = ""
	}
	if sf.observed {
		return kv.EncodeObserved(rec)
	}
	return kv.Encode(rec)
}

// checkNew refuses what cannot become a record.
func checkNew(rec kv.Record) error {
	if err := checkOwn(rec); err != nil {
		return err
	}
	_, err := wholeSeconds(rec.TTL)
	return err
}

// checkOwn refuses what this library did not write.
func checkOwn(rec kv.Record) error {
	if rec.Foreign {
		return fmt.Errorf("a foreign record is left alone: %w", kv.ErrInvalid)
	}
	if rec.Signature == "" {
		return fmt.Errorf("a record needs a signature: %w", kv.ErrInvalid)
	}
	return nil
}
