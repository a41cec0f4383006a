//go:build unix

package linear_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/electkv/election/internal/linear"
	"github.com/electkv/election/kv"
)

// Processes of one host share the directory. Nothing lies between them that
// could be cut, so it is they who are stopped and killed in the middle of what
// they do, and who give up early.
func TestTheFileStoreIsLinearizable(t *testing.T) {
	t.Parallel() // it often waits
	crew := &crew{TB: t, dir: t.TempDir(), recorder: linear.NewRecorder()}
	for range clients + 2 {
		crew.posts = append(crew.posts, &post{})
		crew.man(len(crew.posts) - 1)
	}
	try(t, crew.recorder, subject{
		name:  "file",
		brief: 300 * time.Millisecond,
		open:  func(client int) kv.Store { return crew.posts[client] },
		faults: []fault{
			{name: "process paused", hold: 1200 * time.Millisecond, strike: crew.pauseSome},
			{name: "process killed", hold: 200 * time.Millisecond, strike: crew.killSome},
			{name: "processes given no time", hold: 100 * time.Millisecond, strike: crew.hurry},
		},
	})
}

// A crew is the processes that use the directory, each at its post.
type crew struct {
	testing.TB
	dir      string
	recorder *linear.Recorder
	posts    []*post
	numbers  int // clients so far
}

// man puts a new process, which is a new client, at a post.
func (c *crew) man(i int) {
	w := startWorker(c.TB, c.dir)
	c.posts[i].set(w, c.recorder.Client(c.numbers, w), c.numbers)
	c.numbers++
}

// some chooses posts of the crowd.
func some(random *rand.Rand) []int { return random.Perm(clients)[:1+random.IntN(clients)] }

func (c *crew) pauseSome(random *rand.Rand) func() {
	struck := some(random)
	for _, i := range struck {
		c.posts[i].worker().pause()
	}
	return func() {
		for _, i := range struck {
			c.posts[i].worker().resume()
		}
	}
}

// killSome kills processes, and with them the records that they hold.
func (c *crew) killSome(random *rand.Rand) func() {
	struck := some(random)
	for _, i := range struck {
		c.recorder.Dies(c.posts[i].number())
		c.posts[i].worker().kill()
	}
	return func() {
		for _, i := range struck {
			c.man(i)
		}
	}
}

// hurry ends the operations' contexts within a moment.
func (c *crew) hurry(random *rand.Rand) func() {
	for _, i := range some(random) {
		c.posts[i].hurry(time.Duration(50+random.IntN(500)) * time.Microsecond)
	}
	return func() {
		for _, p := range c.posts {
			p.hurry(0)
		}
	}
}

// A post is a client's store, whichever process serves it.
type post struct {
	kv.Store // none: nobody watches here

	mu     sync.Mutex
	w      *worker
	store  kv.Store // w as it is recorded
	client int
	limit  time.Duration // of an operation, if not zero
}

func (p *post) set(w *worker, store kv.Store, client int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.w, p.store, p.client = w, store, client
}

func (p *post) worker() *worker {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.w
}

func (p *post) number() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.client
}

// hurry bounds each operation by d, or no more if d is zero.
func (p *post) hurry(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = d
}

// begin returns the store of the process that is there now.
func (p *post) begin(ctx context.Context) (kv.Store, context.Context, context.CancelFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.limit == 0 {
		return p.store, ctx, func() {}
	}
	ctx, cancel := context.WithTimeout(ctx, p.limit)
	return p.store, ctx, cancel
}

func (p *post) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	store, ctx, done := p.begin(ctx)
	defer done()
	return store.Create(ctx, name, rec)
}

func (p *post) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	store, ctx, done := p.begin(ctx)
	defer done()
	return store.Swap(ctx, name, old, next)
}

func (p *post) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	store, ctx, done := p.begin(ctx)
	defer done()
	return store.Refresh(ctx, name, rec)
}

func (p *post) Delete(ctx context.Context, name string, rec kv.Record) error {
	store, ctx, done := p.begin(ctx)
	defer done()
	return store.Delete(ctx, name, rec)
}

func (p *post) Get(ctx context.Context, name string) (kv.Record, error) {
	store, ctx, done := p.begin(ctx)
	defer done()
	return store.Get(ctx, name)
}
