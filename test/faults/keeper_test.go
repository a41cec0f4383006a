//go:build linux

package faults

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// A keeper is where the keep-alives of a candidate of etcd can get lost, and its creates, while
// all else that it asks is answered.
type keeper struct {
	loses atomic.Bool
	lies  time.Duration // the TTL that a lost one is answered with all the same; zero: it has no answer

	name    string // of the election
	denies  bool   // that a create may be carried out whose answer is lost
	mu      sync.Mutex
	losing  bool // creates
	deliver func() error
}

// loseCreates has all creates of the leader's record get lost from now on.
func (k *keeper) loseCreates() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.losing = true
}

// arrive carries out the first create that was lost, and loses no more.
func (k *keeper) arrive() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.losing = false
	if k.deliver == nil {
		return errors.New("no create was lost")
	}
	return k.deliver()
}

// unary is a [grpc.UnaryClientInterceptor].
func (k *keeper) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if !k.losesCreate(req) {
		return invoker(ctx, method, req, reply, cc, opts...)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.deliver == nil {
		k.deliver = func() error {
			answer := &pb.TxnResponse{}
			err := invoker(context.WithoutCancel(ctx), method, req, answer, cc, opts...)
			if err == nil && !answer.Succeeded {
				err = errors.New("the create was refused")
			}
			return err
		}
	}
	if k.denies {
		return rpctypes.ErrGRPCTooManyOps
	}
	return rpctypes.ErrGRPCTimeout
}

// losesCreate reports whether a request puts in the leader's record, and gets lost.
func (k *keeper) losesCreate(req any) bool {
	txn, ok := req.(*pb.TxnRequest)
	k.mu.Lock()
	defer k.mu.Unlock()
	return ok && k.losing && slices.ContainsFunc(txn.Success, func(op *pb.RequestOp) bool {
		put := op.GetRequestPut()
		return put != nil && string(put.Key) == k.name
	})
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
