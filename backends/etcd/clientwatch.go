package etcdkv

import (
	"context"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// A clientWatch is a watch by the client's Watcher, which a goroutine reads.
type clientWatch struct {
	stop   context.CancelFunc
	done   chan struct{}
	opened time.Time
}

// openByClient opens a watch, which outlasts the context of its opening.
func openByClient(opening context.Context, client *clientv3.Client, keys span, to listener) (watch, error) {
	w := &clientWatch{done: make(chan struct{}), opened: time.Now()}
	ctx, stop := context.WithCancel(context.WithoutCancel(opening))
	w.stop = stop
	goesOn := context.AfterFunc(opening, stop)
	late := time.AfterFunc(answerTime, stop)
	// The client puts all watches whose contexts have the same gRPC metadata on one
	// stream, and waits until the server has confirmed.
	changes := client.Watch(clientv3.WithRequireLeader(ctx), keys.start, clientv3.WithRange(keys.end))
	switch punctual := late.Stop(); {
	case !goesOn():
		return nil, context.Cause(opening)
	case !punctual:
		stop()
		return nil, errSilent
	}
	go func() {
		defer close(w.done)
		if why := follow(changes, to); ctx.Err() == nil {
			to.lose(why)
		}
	}()
	return w, nil
}

// follow has the listener take changes until the watch is lost. The client keeps every
// change that nobody has taken from it.
func follow(changes clientv3.WatchChan, to listener) error {
	for resp := range changes {
		if err := resp.Err(); err != nil {
			return err
		}
		events := make([]*mvccpb.Event, len(resp.Events))
		for i, e := range resp.Events {
			events[i] = (*mvccpb.Event)(e)
		}
		to.take(events)
	}
	return errLost
}

func (w *clientWatch) heard() time.Time { return w.opened }

func (w *clientWatch) close() {
	w.stop()
	<-w.done
}
