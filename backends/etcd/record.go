package etcdkv

import (
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/kv"
)

// longestText bounds the text form of records; see longestKey.
const longestText = 1 << 20

// decode returns the record that a key holds.
func decode(pair *mvccpb.KeyValue) kv.Record {
	rec := kv.Decode(string(pair.Value))
	rec.Lease = leaseName(clientv3.LeaseID(pair.Lease))
	rec.Permanent = pair.Lease == 0
	return stored(rec, pair.ModRevision)
}

// stored returns a record as it stands once the write with that ModRevision has
// stored its text. If the text has no token, then that write has brought the
// signature in, and the token is its revision.
func stored(rec kv.Record, revision int64) kv.Record {
	rec.Revision = uint64(revision)
	if rec.Token == 0 && !rec.Foreign {
		rec.Token = rec.Revision
	}
	return rec
}

// encode returns the text of a record. A record that has a token, which is one
// whose value changes, takes it along.
func encode(rec kv.Record) (string, error) {
	rec.Revision = 0
	text := kv.Encode(rec)
	if len(text) > longestText {
		return "", fmt.Errorf("a record of %d bytes: want up to %d: %w", len(text), longestText, kv.ErrInvalid)
	}
	return text, nil
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
