//go:build linux

package faults

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// A keeper is where the keep-alives of a candidate of etcd can get lost, while all else that it
// asks is answered.
type keeper struct {
	loses atomic.Bool
	lies  time.Duration // the TTL that a lost one is answered with all the same; zero: it has no answer
}

// stream is a [grpc.StreamClientInterceptor].
func (k *keeper) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if !strings.HasSuffix(method, "/LeaseKeepAlive") || !k.loses.Load() {
		return streamer(ctx, desc, cc, method, opts...)
	}
	return &unkept{ctx: ctx, lies: k.lies, asked: make(chan int64, 1000)}, nil
}

// unkept is a stream of keep-alives that are lost.
type unkept struct {
	grpc.ClientStream
	ctx   context.Context
	lies  time.Duration
	asked chan int64
}

func (u *unkept) SendMsg(m any) error {
	u.asked <- m.(*pb.LeaseKeepAliveRequest).ID
	return nil
}

func (u *unkept) RecvMsg(m any) error {
	if u.lies == 0 {
		<-u.ctx.Done()
		return status.FromContextError(u.ctx.Err()).Err()
	}
	resp := m.(*pb.LeaseKeepAliveResponse)
	resp.ID, resp.TTL = <-u.asked, int64(u.lies/time.Second)
	return nil
}

func (*unkept) CloseSend() error { return nil }
