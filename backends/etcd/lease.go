package etcdkv

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/internal/spare"
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

// A use is what a lease is kept ready for: the next record of a safe, with a TTL in whole
// seconds.
type use struct {
	start string
	ttl   time.Duration
}

// grant asks for a lease, with the TTL that the server grants. If the client asks twice,
// the lease whose reply was lost fades by itself.
func (sf safe) grant(ctx context.Context, ttl time.Duration) (spare.Lease, error) {
	seconds, err := wholeSeconds(ttl)
	if err != nil {
		return spare.Lease{}, err
	}
	asked := time.Now()
	resp, err := sf.client.Grant(ctx, seconds)
	if err != nil {
		return spare.Lease{}, err
	}
	return spare.Lease{ID: leaseName(resp.ID), TTL: time.Duration(resp.TTL) * time.Second, Since: asked}, nil
}

// errDenied is what etcd says of a lease that has ended. Alone it proves nothing: a
// member that has just become etcd's leader says so as well, of a lease that its
// predecessor has granted, until it has caught up. So the caller looks at the key.
var errDenied = errors.New("etcd denies the lease")

// errDoubt is the error if a record turns out to have the lease that etcd denies: the
// outcome is open.
func errDoubt(lease string) error {
	return fmt.Errorf("%w %s although a record has it, perhaps because etcd has a new leader that has not caught up", errDenied, lease)
}

// keepAlive starts the lease's TTL anew and returns it. It returns errDenied if etcd
// knows no such lease, and [kv.ErrStale] if none is named.
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
		return 0, errDenied
	}
	if err != nil {
		return 0, err
	}
	return time.Duration(resp.TTL) * time.Second, nil
}

// keys returns the keys of records that have the lease, none if there is no such
// lease. A companion is nothing without its key.
func (sf safe) keys(ctx context.Context, lease string) (keys []string, _ error) {
	id, err := leaseID(lease)
	if err != nil || id == clientv3.NoLease {
		return nil, err
	}
	resp, err := sf.client.TimeToLive(ctx, id, clientv3.WithAttachedKeys())
	if err != nil {
		return nil, err
	}
	for _, key := range resp.Keys {
		if !sf.isCompanion(string(key)) {
			keys = append(keys, string(key))
		}
	}
	return keys, nil
}

// backed is the condition that the lease still has one of the keys that it has
// now. It returns errDenied if it has none.
func (sf safe) backed(ctx context.Context, lease string) (clientv3.Cmp, error) {
	keys, err := sf.keys(ctx, lease)
	if err != nil {
		return clientv3.Cmp{}, err
	}
	if len(keys) == 0 {
		return clientv3.Cmp{}, errDenied
	}
	id, err := leaseID(lease)
	return clientv3.Compare(clientv3.LeaseValue(keys[0]), "=", id), err
}
