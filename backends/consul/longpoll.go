package consulkv

import (
	"context"
	"errors"
	"net/http/httptrace"
	"time"
)

// A longPoll is the room that a blocking query takes.
type longPoll struct {
	conns    *connections
	ctx      context.Context
	cancel   context.CancelCauseFunc
	trial    bool // it may turn out that there is no room for it
	answered bool // so its connection may be another request's; guarded by conns.mu
	released chan struct{}
}

// letGo is how long the answer to a query that has ended waits until the query has returned. That
// takes no time, unless a transport returns no query before its answer.
const letGo = time.Second

// errNeeded is why a blocking query ends whose connection a request may need.
var errNeeded = errors.New("a request needs the connection")

// hold returns the room for a blocking query, whose context ends when a request
// needs the connection; nil if there is none.
func (c *connections) hold(ctx context.Context) *longPoll {
	c.mu.Lock()
	defer c.mu.Unlock()
	room := int(time.Since(c.refused) / regain)
	if len(c.long) >= min(longPolls, room) {
		return nil
	}
	p := &longPoll{conns: c, trial: room < longPolls, released: make(chan struct{})}
	ctx, p.cancel = context.WithCancelCause(ctx)
	p.ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn:              func(httptrace.GotConnInfo) { p.answers(false) },
		GotFirstResponseByte: func() { p.answers(true) },
	})
	c.long[p] = struct{}{}
	return p
}

// answers takes in that the answer begins, or that the query is about to be sent.
//
// Once net/http has an answer without a body it lends the connection to the next request, and
// yet closes it if the query's context ends before the query itself has returned. A write would be
// cut off, and nobody could tell whether it has happened. So what is answered is not ended for
// another request any more, and what has ended returns before its answer is read.
func (p *longPoll) answers(begun bool) {
	p.conns.mu.Lock()
	p.answered = begun
	p.conns.mu.Unlock()
	if !begun || p.ctx.Err() == nil {
		return
	}
	late := time.NewTimer(letGo)
	defer late.Stop()
	select {
	case <-p.released:
	case <-late.C:
	}
}

// wait returns how long the query is to wait, which is to be no longer than most.
func (p *longPoll) wait(most time.Duration) time.Duration {
	if p.trial {
		return min(most, trial)
	}
	return most
}

// needed reports whether the query has ended for the sake of a request.
func (p *longPoll) needed() bool { return errors.Is(context.Cause(p.ctx), errNeeded) }

// release gives the room back, when the query has returned.
func (p *longPoll) release() {
	p.conns.mu.Lock()
	defer p.conns.mu.Unlock()
	delete(p.conns.long, p)
	p.cancel(nil)
	close(p.released)
}
