package etcdkv

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/kv"
)

const (
	// shortestLease is what a server grants at least whose election timeout is
	// the default: one and a half times that, in whole seconds.
	shortestLease = 2 * time.Second
	// sweep is how late at most a healthy server deletes the keys of an expired
	// lease. It looks for expired ones twice a second.
	sweep = time.Second
)

// wholeSeconds returns the TTL as etcd counts it, rounded up.
func wholeSeconds(ttl time.Duration) (int64, error) {
	if ttl <= 0 || ttl > clientv3.MaxLeaseTTL*time.Second {
		return 0, fmt.Errorf("TTL %v: want one above zero and up to %d s: %w", ttl, clientv3.MaxLeaseTTL, kv.ErrInvalid)
	}
	return int64((ttl + time.Second - 1) / time.Second), nil
}

// leaseName returns what a record calls a lease: its ID in hexadecimal, as
// etcdctl prints it, or nothing for none.
func leaseName(id clientv3.LeaseID) string {
	if id == clientv3.NoLease {
		return ""
	}
	return strconv.FormatInt(int64(id), 16)
}

// leaseID is the inverse of leaseName.
func leaseID(name string) (clientv3.LeaseID, error) {
	if name == "" {
		return clientv3.NoLease, nil
	}
	id, err := strconv.ParseInt(name, 16, 64)
	if err != nil {
		return 0, fmt.Errorf("lease %.40q: want a hexadecimal number: %w", name, kv.ErrInvalid)
	}
	return clientv3.LeaseID(id), nil
}

// grant asks for a lease and returns it with the TTL that the server grants. If
// the client asks twice, the lease whose reply was lost fades by itself.
func (sf safe) grant(ctx context.Context, ttl time.Duration) (lease string, granted time.Duration, _ error) {
	seconds, err := wholeSeconds(ttl)
	if err != nil {
		return "", 0, err
	}
	resp, err := sf.client.Grant(ctx, seconds)
	if err != nil {
		return "", 0, err
	}
	return leaseName(resp.ID), time.Duration(resp.TTL) * time.Second, nil
}

// keepAlive starts the lease's TTL anew and returns it. It returns [kv.ErrStale]
// if there is no such lease.
func (sf safe) keepAlive(ctx context.Context, lease string) (time.Duration, error) {
	id, err := leaseID(lease)
	if err != nil {
		return 0, err
	}
	if id == clientv3.NoLease {
		return 0, kv.ErrStale
	}
	resp, err := sf.client.KeepAliveOnce(ctx, id)
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return 0, kv.ErrStale
	}
	if err != nil {
		return 0, err
	}
	return time.Duration(resp.TTL) * time.Second, nil
}

// revoke ends a lease, and with it all its keys. One that is gone is fine.
func (sf safe) revoke(ctx context.Context, lease string) error {
	id, err := leaseID(lease)
	if err != nil || id == clientv3.NoLease {
		return err
	}
	if _, err = sf.client.Revoke(ctx, id); errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return nil
	}
	return err
}

// keys returns the keys of records that have the lease, none if there is no such
// lease. A companion is nothing without its key.
func (sf safe) keys(ctx context.Context, lease string) ([]string, error) {
	id, err := leaseID(lease)
	if err != nil || id == clientv3.NoLease {
		return nil, err
	}
	resp, err := sf.client.TimeToLive(ctx, id, clientv3.WithAttachedKeys())
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, key := range resp.Keys {
		if !sf.isCompanion(string(key)) {
			keys = append(keys, string(key))
		}
	}
	return keys, nil
}

// backed is the condition that the lease still has one of the keys that it has
// now. It returns [kv.ErrStale] if it has none.
func (sf safe) backed(ctx context.Context, lease string) (clientv3.Cmp, error) {
	keys, err := sf.keys(ctx, lease)
	if err != nil {
		return clientv3.Cmp{}, err
	}
	if len(keys) == 0 {
		return clientv3.Cmp{}, kv.ErrStale
	}
	id, err := leaseID(lease)
	return clientv3.Compare(clientv3.LeaseValue(keys[0]), "=", id), err
}

// free ends the lease of a record that was deleted, unless another key has it:
// after a hand-over, one lease backs two records.
func (sf safe) free(ctx context.Context, lease string) error {
	keys, err := sf.keys(ctx, lease)
	if err == nil && len(keys) == 0 {
		err = sf.revoke(ctx, lease)
	}
	if err != nil {
		return fmt.Errorf("the safe is empty, and the lease fades by itself: %w", err)
	}
	return nil
}
