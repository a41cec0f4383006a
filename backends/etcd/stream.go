package etcdkv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A stream carries the watches of a store. One goroutine receives and one sends, however
// many watches there are, from the first one on until the last is closed. It never resumes:
// when it breaks, all its watches are lost, and those that are opened anew share the next.
//
// What is in it is guarded by the hub's mutex, which is held while listeners are told.
type stream struct {
	hub    *hub
	cancel context.CancelFunc
	done   chan struct{} // closed when its goroutines have ended
	wake   chan struct{} // there may be something to send

	users   int                    // watches that are not closed
	ids     int64                  // that were given to watches
	wanted  []*sharedWatch         // the server was not asked for them yet
	asked   []*sharedWatch         // it has not answered yet, in the order of the requests
	open    map[int64]*sharedWatch // that it has confirmed, by id
	dropped []int64                // that it is to cancel
	ordered bool                   // it answers in the order of the requests
	heard   time.Time              // when it was heard last
}

// begin begins a stream. It is called with the hub's mutex held.
func (h *hub) begin(conn *grpc.ClientConn) *stream {
	// A server that is cut off from its peers would keep its watches, and tell them nothing.
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(context.Background()))
	s := &stream{
		hub:    h,
		cancel: cancel,
		done:   make(chan struct{}),
		wake:   make(chan struct{}, 1),
		open:   make(map[int64]*sharedWatch),
	}
	go s.run(ctx, conn)
	return s
}

// run carries requests and responses until the stream breaks or has no watches.
func (s *stream) run(ctx context.Context, conn *grpc.ClientConn) {
	defer close(s.done)
	defer s.cancel()
	server, err := dial(ctx, conn)
	if err != nil {
		s.fail(err)
		return
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		s.send(ctx, server)
	}()
	s.fail(broken(s.receive(server)))
	s.cancel()
	<-sent
}

// dial opens a stream by the client's connection, which waits for a server that it reaches,
// and logs in for each stream if there is a password.
func dial(ctx context.Context, conn *grpc.ClientConn) (pb.Watch_WatchClient, error) {
	for {
		server, err := pb.NewWatchClient(conn).Watch(ctx, grpc.WaitForReady(true), grpc.MaxCallRecvMsgSize(math.MaxInt32))
		if err == nil || !passing(err) {
			return server, rpctypes.Error(err)
		}
		sleep(ctx, jitter(firstPause))
	}
}

// send sends what is to be sent until the stream ends. It waits while the server takes in
// nothing, and nobody waits for it.
func (s *stream) send(ctx context.Context, server pb.Watch_WatchClient) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		}
		for req := s.next(); req != nil; req = s.next() {
			if server.Send(req) != nil {
				return // receive has the error
			}
		}
	}
}

// next returns the next request, or nil.
func (s *stream) next() *pb.WatchRequest {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if len(s.dropped) > 0 {
		var id int64
		id, s.dropped = s.dropped[0], s.dropped[1:]
		return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{CancelRequest: &pb.WatchCancelRequest{WatchId: id}}}
	}
	for len(s.wanted) > 0 && (s.ordered || len(s.asked) == 0) {
		w := s.wanted[0]
		s.wanted[0], s.wanted = nil, s.wanted[1:]
		if !w.closed {
			s.asked = append(s.asked, w)
			return w.request()
		}
	}
	return nil
}

// receive takes in what the server sends until the stream breaks.
func (s *stream) receive(server pb.Watch_WatchClient) error {
	for {
		resp, err := server.Recv()
		if err == nil {
			err = s.take(resp)
		}
		if err != nil {
			return err
		}
	}
}

// take takes in a response. Those of watches that were closed meanwhile mean nothing.
func (s *stream) take(resp *pb.WatchResponse) error {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.heard = time.Now()
	if resp.Created {
		return s.confirm(resp)
	}
	w := s.open[resp.WatchId]
	switch {
	case w == nil:
	case resp.Canceled || resp.CompactRevision != 0:
		delete(s.open, resp.WatchId)
		w.to.lose(s.refusal(resp))
	default:
		w.to.take(resp.Events)
	}
	return nil
}

// confirm takes in the answer to the oldest request.
//
// A server takes the ids that it is asked for, except for a refusal, and answers in order. A
// gRPC proxy of etcd's does neither: it gets the next request when it has answered the last.
func (s *stream) confirm(resp *pb.WatchResponse) error {
	if len(s.asked) == 0 {
		return status.Error(codes.Internal, "a watch is confirmed that nobody has asked for")
	}
	w := s.asked[0]
	s.asked[0], s.asked = nil, s.asked[1:]
	s.rouse()
	switch {
	case resp.Canceled:
		w.respond(s.refusal(resp))
		return nil
	case s.ordered && resp.WatchId != w.id:
		w.respond(errLost)
		return status.Errorf(codes.Internal, "watch %d is confirmed before %d", resp.WatchId, w.id)
	}
	s.ordered = resp.WatchId == w.id
	w.id = resp.WatchId
	if w.closed {
		s.dropped = append(s.dropped, w.id)
		return nil
	}
	s.open[w.id] = w
	w.respond(nil)
	return nil
}

// add puts a watch on the stream.
func (s *stream) add(w *sharedWatch) {
	s.ids++ // zero would let the server choose
	s.users++
	w.stream, w.id = s, s.ids
	s.wanted = append(s.wanted, w)
	s.rouse()
}

// remove takes a watch from the stream, and ends the stream if it was the last one.
func (s *stream) remove(w *sharedWatch) (last bool) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	w.closed = true
	if s.open[w.id] == w {
		delete(s.open, w.id)
		s.dropped = append(s.dropped, w.id)
		s.rouse()
	}
	s.users--
	if s.users > 0 {
		return false
	}
	s.retire()
	s.cancel()
	return true
}

// late returns the error of a watch that was not confirmed in time. If nothing was heard
// since it was begun, the connection is dead, and the watches that are open are lost. Those
// that wait have a clock of their own.
func (s *stream) late(begun time.Time) error {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if s.heard.Before(begun) {
		s.retire()
		s.lose(errSilent)
	}
	return errSilent
}

// fail ends all watches.
func (s *stream) fail(why error) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.retire()
	for _, waiting := range [][]*sharedWatch{s.asked, s.wanted} {
		for _, w := range waiting {
			w.respond(why)
		}
	}
	s.asked, s.wanted = nil, nil
	s.lose(why)
}

// lose ends the watches that are open.
func (s *stream) lose(why error) {
	for _, w := range s.open {
		w.to.lose(why)
	}
	clear(s.open)
}

// retire has new watches go to another stream. This one ends with the last that it has.
func (s *stream) retire() {
	if s.hub.stream == s {
		s.hub.stream = nil
	}
}

// rouse has what is to be sent be sent.
func (s *stream) rouse() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// refusal returns why the server has ended a watch, or opened none.
func (s *stream) refusal(resp *pb.WatchResponse) error {
	reason := resp.CancelReason
	if _, text, ok := strings.Cut(reason, " desc = "); ok { // the text of a status
		reason = text
	}
	err := rpctypes.Error(errors.New(reason))
	switch {
	case resp.CompactRevision != 0:
		return rpctypes.ErrCompacted
	case reason == "":
		return errLost
	case errors.Is(err, rpctypes.ErrUserEmpty):
		s.retire()
	case errors.Is(err, rpctypes.ErrInvalidAuthToken), errors.Is(err, rpctypes.ErrAuthOldRevision):
		// The stream has the token with which it began, for ever. What is open stays so.
		s.retire()
		return fmt.Errorf("%w: %w", errLost, err)
	}
	return err
}

// broken returns the error of the watches of a stream that has broken: one that is lost,
// unless it would happen again.
func broken(err error) error {
	if errors.Is(err, io.EOF) || status.Code(err) == codes.Canceled || passing(err) {
		return fmt.Errorf("%w: %w", errLost, rpctypes.Error(err))
	}
	return rpctypes.Error(err)
}

// passing reports whether an error is about a server that is gone, and not about what was
// asked of it.
func passing(err error) bool {
	code := status.Code(err)
	if known := (rpctypes.EtcdError{}); errors.As(err, &known) { // of a login
		code = known.Code()
	}
	return code == codes.Unavailable || code == codes.Internal
}
