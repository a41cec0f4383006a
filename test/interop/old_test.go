//go:build linux

package interop

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
)

// An oldLock is the client of a lock that is not of this library.
type oldLock interface {
	// take waits until it holds the lock, and returns what it holds, or ctx's
	// error. After any other error it may be called again.
	take(ctx context.Context) (*grip, error)
	close()
}

// A grip is a lock that is held, as far as its client knows.
type grip struct {
	owner string // how the store tells its record from others: see Sighting
	value string // what it has published, as its own observers read it
	token uint64
	// right is until when the store has granted it, from the send of the request;
	// zero if the client does not know.
	right time.Duration
	// lost is closed when the client's library says that it is over. Nil if it
	// does not say.
	lost <-chan struct{}
	// renew prolongs it, and returns its new right. Nil if the library does that
	// by itself, or if nobody does.
	renew func(ctx context.Context) (time.Duration, error)
	// release gives it up. early is set if the library does that by itself before
	// it tells that it is over.
	release func(ctx context.Context)
	early   bool
}

// stopping is how long the work of an old lock takes to stop when it hears that
// the lock is lost. Only then it releases: what it left behind, if it is still
// there.
const stopping = 100 * time.Millisecond

// impatience is how long an old client waits for an answer. It is short so that
// one whose link was put right stands again soon.
const impatience = time.Second

// hold takes the lock again and again, as a service does that has one.
func (p *process) hold(ctx context.Context) error {
	lock, err := oldLocks[p.Lock](p)
	if err != nil {
		return err
	}
	defer lock.close()
	for ctx.Err() == nil {
		g, err := lock.take(ctx)
		if err != nil {
			pass(ctx, 50*time.Millisecond)
			continue
		}
		p.grip(ctx, g)
		pass(ctx, between(p.Rest))
	}
	return nil
}

// grip believes that it holds until something says otherwise.
func (p *process) grip(ctx context.Context, g *grip) {
	p.forget()
	p.note(history.Event{Kind: history.Elected, Value: g.owner, Text: g.value, Token: g.token, Until: g.right})
	cause, pause := p.keep(ctx, g)
	now := boottime.Now()
	if g.early {
		pause = -p.TTL // it may have released it in all that time
	}
	p.note(history.Event{Kind: history.Ended, At: now, Text: cause, Until: now + pause})
	if pause > 0 {
		time.Sleep(pause)
	}
	// Also when ctx has ended: a program that is told to end releases what it has.
	released, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*impatience)
	defer cancel()
	g.release(released)
}

// keep returns why it does not hold any more, and how long it takes from then to
// the release.
func (p *process) keep(ctx context.Context, g *grip) (cause string, pause time.Duration) {
	turn := time.NewTimer(p.turn())
	defer turn.Stop()
	renew := time.NewTicker(p.TTL / 3)
	defer renew.Stop()
	for {
		select {
		case <-ctx.Done():
			return "told to close", 0
		case <-turn.C:
			return "its turn is over", 0
		case <-p.orders:
			return "told to give up", 0
		case <-g.lost:
			return "told that it is lost", stopping
		case <-renew.C:
		}
		if g.renew == nil {
			continue
		}
		right, err := g.renew(ctx)
		if err != nil {
			return fmt.Sprintf("cannot renew: %v", err), stopping
		}
		p.note(history.Event{Kind: history.Extended, Until: right})
	}
}

// ours is the lock of this library.
const ours = "ours"

// oldLocks are the others, by their names.
var oldLocks = map[string]func(*process) (oldLock, error){
	"redsync":                  newRedsync,
	"redislock":                newRedislock,
	"redislock with a fence":   newFencedRedislock,
	"rueidislock":              newRueidislock,
	"SET NX PX and Lua":        newSetNX,
	"SET NX PX and DEL":        newSetNXAndDel,
	"SETNX without its EXPIRE": newHalfSetNX,
	"api.Lock":                 newAPILock,
	"consul lock":              newConsulLock,
	"concurrency.Mutex":        newMutex,
	"concurrency.Election":     newElection,
	"etcdctl lock":             newEtcdctlLock,
	"etcdctl elect":            newEtcdctlElect,
}

// A child holds for the command that has started it, until its turn is over.
func (p *process) child(ctx context.Context) int {
	g := childGrip()
	p.forget()
	p.note(history.Event{Kind: history.Elected, Value: g.owner, Text: g.value, Token: g.token})
	told := make(chan os.Signal, 1)
	notifyTerm(told)
	lost := make(chan struct{})
	go func() {
		<-told
		close(lost)
	}()
	g.lost = lost
	cause, pause := p.keep(ctx, g)
	now := boottime.Now()
	p.note(history.Event{Kind: history.Ended, At: now, Text: cause, Until: now + pause})
	time.Sleep(pause)
	return 0 // which the command waits for, to release
}
