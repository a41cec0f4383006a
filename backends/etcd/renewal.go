package etcdkv

import (
	"context"
	"errors"
	"io"
	"reflect"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/gate"
)

// A renewal keeps a lease alive that several shares of a batch have.
type renewal struct {
	done chan struct{} // closed when the rest is known
	ttl  time.Duration // that etcd has granted; zero if it denies the lease, or has not answered
	err  error         // if it has not answered
}

// renewCommon begins to keep the leases alive that several shares have, each once.
func (b *batch) renewCommon(ctx context.Context, shares [][]claim) {
	in := make(map[clientv3.LeaseID]int, len(shares))
	for _, share := range shares {
		for _, id := range leasesOf(share) {
			in[id]++
		}
	}
	for id, times := range in {
		if times == 1 {
			continue
		}
		if b.common == nil {
			b.common = make(map[clientv3.LeaseID]*renewal)
		}
		r := &renewal{done: make(chan struct{})}
		b.common[id] = r
		b.all.Go(func() {
			defer close(r.done)
			granted, err := b.keepAlive(ctx, []clientv3.LeaseID{id})
			r.ttl, r.err = granted[id], err
		})
	}
}

// leasesOf returns the leases on which the claims of a share depend.
func leasesOf(share []claim) []clientv3.LeaseID {
	leases := make([]clientv3.LeaseID, 0, len(share))
	for _, c := range share {
		if leases = append(leases, c.id); c.moves() {
			leases = append(leases, c.to)
		}
	}
	slices.Sort(leases)
	return slices.Compact(leases)
}

// renew starts the leases of a share anew and returns the TTLs that etcd has granted. A lease
// that etcd denies has none. The error is that of those without an answer.
func (b *batch) renew(ctx context.Context, share []claim) (map[clientv3.LeaseID]time.Duration, error) {
	var own, common []clientv3.LeaseID
	for _, id := range leasesOf(share) {
		if b.common[id] == nil {
			own = append(own, id)
		} else {
			common = append(common, id)
		}
	}
	granted, err := b.keepAlive(ctx, own)
	for _, id := range common {
		r := b.common[id]
		<-r.done // which ends with ctx
		if granted[id] = r.ttl; err == nil {
			err = r.err
		}
	}
	return granted, err
}

// keepAlive keeps leases alive, as renew does.
func (b *batch) keepAlive(ctx context.Context, leases []clientv3.LeaseID) (granted map[clientv3.LeaseID]time.Duration, err error) {
	sent := boottime.Read()
	switch {
	case len(leases) == 0:
		return make(map[clientv3.LeaseID]time.Duration), nil
	case b.wrapped():
		granted = b.keepAliveEach(ctx, leases)
	default:
		granted, err = b.keepAliveAll(ctx, leases)
	}
	for id, ttl := range granted {
		if ttl > 0 {
			b.sharing.renewed(leaseName(id), sent)
		}
	}
	return granted, err
}

// keepAliveAll keeps leases alive by one stream. The server takes the requests of a stream
// one by one, and a member that does not lead asks the leader for each. So each share of a
// batch has a stream of its own.
func (b *batch) keepAliveAll(ctx context.Context, leases []clientv3.LeaseID) (map[clientv3.LeaseID]time.Duration, error) {
	ctx, stop := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer stop()
	stream, err := pb.NewLeaseClient(b.client.ActiveConnection()).LeaseKeepAlive(ctx, grpc.WaitForReady(true))
	granted := make(map[clientv3.LeaseID]time.Duration, len(leases))
	if err != nil {
		return granted, clientv3.ContextError(ctx, err)
	}
	for _, id := range leases {
		// A share is small enough to be sent before any of it is read, so this waits for
		// no answer to be received.
		if stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(id)}) != nil {
			break // why, the next answer tells
		}
	}
	_ = stream.CloseSend() // likewise
	for range leases {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return granted, clientv3.ContextError(ctx, err)
		}
		granted[clientv3.LeaseID(resp.ID)] = time.Duration(resp.TTL) * time.Second
	}
	return granted, nil
}

// keepAliveEach keeps leases alive one by one, a few at a time. It does not wait for those
// that take long.
func (b *batch) keepAliveEach(ctx context.Context, leases []clientv3.LeaseID) map[clientv3.LeaseID]time.Duration {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	granted := make(map[clientv3.LeaseID]time.Duration, len(leases))
	turns := gate.Yielding(fewAtOnce, long)
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, id := range leases {
		leave, _ := turns.Enter(ctx)
		all.Go(func() {
			defer leave()
			if resp, err := b.client.KeepAliveOnce(ctx, id); err == nil {
				mu.Lock()
				defer mu.Unlock()
				granted[id] = time.Duration(resp.TTL) * time.Second
			}
		})
	}
	for range fewAtOnce { // until each has left or takes long
		leave, _ := turns.Enter(ctx)
		defer leave()
	}
	stop()
	all.Wait()
	return granted
}

// wrapped reports whether keep-alives have to go through what the client has for leases,
// instead of its connection, because that is somebody else's, or there is no connection.
func (s *Store) wrapped() bool {
	own := clientv3.NewLeaseFromLeaseClient(nil, nil, 0)
	_ = own.Close() // which it does without ever having asked anybody
	return reflect.TypeOf(s.client.Lease) != reflect.TypeOf(own) || s.client.ActiveConnection() == nil
}
