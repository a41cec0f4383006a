package etcdkv

import (
	"context"
	"reflect"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// A watch tells a listener of each change at a range of keys, from the moment on at which
// it was opened.
type watch interface {
	// heard returns when its connection was last known to be alive.
	heard() time.Time

	// close ends it. Nothing is told any more when it has returned.
	close()
}

// A listener is told of changes, in the order of their revisions, all of one revision in
// one call, and of what has ended the watch. It returns soon, and opens and closes no watch
// before it returns.
type listener interface {
	take(changes []*mvccpb.Event)
	lose(why error)
}

// A span is a range of keys, or one key if end is empty.
type span struct{ start, end string }

// A hub opens watches. Those of a store share a stream, so that none costs a goroutine.
type hub struct {
	mu     sync.Mutex // guards what is in the streams as well
	stream *stream    // that new watches go to, nil if there is none
}

// open opens a watch, and returns when the server has confirmed it.
func (h *hub) open(ctx context.Context, client *clientv3.Client, keys span, to listener) (watch, error) {
	if conn := client.ActiveConnection(); conn != nil && asksItself(client) {
		return h.share(ctx, conn, keys, to)
	}
	return openByClient(ctx, client, keys, to)
}

// asksItself reports whether nobody has put another Watcher in place of the client's own.
// That one may watch other keys than it is told to, as package namespace does.
func asksItself(client *clientv3.Client) bool {
	own := clientv3.NewWatchFromWatchClient(nil, nil) // begins nothing
	return reflect.TypeOf(client.Watcher) == reflect.TypeOf(own)
}
