package etcdkv

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// A sharedWatch is one of the watches on a stream. The hub's mutex guards it.
type sharedWatch struct {
	stream *stream
	id     int64 // on the stream: what we ask for, then what the server has confirmed
	keys   span
	to     listener
	answer chan<- error // of the server, nil once it has come
	closed bool
}

// share opens a watch on the hub's stream.
func (h *hub) share(ctx context.Context, conn *grpc.ClientConn, keys span, to listener) (watch, error) {
	begun, answer := time.Now(), make(chan error, 1)
	w := &sharedWatch{keys: keys, to: to, answer: answer}
	h.add(conn, w)
	late := time.NewTimer(answerTime)
	defer late.Stop()
	var err error
	select {
	case err = <-answer:
	case <-late.C:
		err = w.stream.late(begun)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// add puts a watch on the hub's stream, which it begins if there is none.
func (h *hub) add(conn *grpc.ClientConn, w *sharedWatch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stream == nil {
		h.stream = h.begin(conn)
	}
	h.stream.add(w)
}

// heard implements watch: a stream is alive as a whole.
func (w *sharedWatch) heard() time.Time {
	w.stream.hub.mu.Lock()
	defer w.stream.hub.mu.Unlock()
	return w.stream.heard
}

// close implements watch. The last watch of a stream ends that too.
func (w *sharedWatch) close() {
	if last := w.stream.remove(w); last {
		<-w.stream.done
	}
}

// respond tells what the server has answered, an error or not.
func (w *sharedWatch) respond(err error) {
	w.answer <- err
	w.answer = nil
}

// request asks for the watch. Without a revision it begins at the present.
func (w *sharedWatch) request() *pb.WatchRequest {
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{
		WatchId:  w.id,
		Key:      []byte(w.keys.start),
		RangeEnd: []byte(w.keys.end),
	}}}
}
