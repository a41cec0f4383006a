package consulkv

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"
	"weak"

	"github.com/hashicorp/consul/api"

	"github.com/electkv/election/internal/gate"
)

// What the stores of one client have under way at once, so that no watch takes a
// connection that a refresh needs. An agent takes 200 connections from one address
// by default (limits.http_max_conns_per_client), and several processes may share
// the address: three busy ones, or a dozen that wait, fit in beside each other.
const (
	longPolls  = 16 // blocking queries
	shortPolls = 4  // reads, of watches that begin and of keys that find no room for a blocking query
	requests   = 32 // everything else

	// fewRequests is the limit for a while after a refusal. Go's transport keeps
	// about as many connections open between requests (GOMAXPROCS + 1, in the
	// client's default), so that none has to be opened.
	fewRequests = 4
)

// MaxConnections is how many connections the stores of one client hold at most, over
// HTTP/1.1, however many safes they watch and refresh. The client's transport may keep
// some more open that are idle.
const MaxConnections = longPolls + shortPolls + requests

const (
	// calm is how long after a refusal there are few requests and slow polls.
	calm = 5 * time.Second
	// regain is how long after a refusal the first blocking query may come back,
	// and how long each further one takes. The first ones tell whether there is
	// room again, long before all are back.
	regain = 2 * time.Second
	// trial is how long a blocking query waits until all are back. It ends by itself,
	// and its connection goes to whoever needs one: a query that is cancelled closes its
	// connection, and another process may take what the agent has room for.
	trial = 500 * time.Millisecond

	// refusals is how often a request is refused before it fails.
	refusals = 8

	// pollEvery is how often a key without a blocking query is looked at, give or take
	// a quarter; less often if there are so many that it takes longer to look at all of them.
	pollEvery = time.Second
	// checkSpace is how long it is at least from one Txn to the next that looks at keys
	// of watches.
	checkSpace = 250 * time.Millisecond
	// pollSpace is the same for reads of one key, which is new to a watch or has changed: about
	// a fiftieth of what an agent on two cores can answer, but for a burst when many begin at
	// once. After a refusal it is pollSpaceCalm.
	pollSpace     = 20 * time.Millisecond
	pollSpaceCalm = 250 * time.Millisecond
	pollBurst     = 256
)

// connections shares out what one client has under way.
type connections struct {
	requests, polls *gate.Gate
	turn            *gate.Gate // of checks

	mu      sync.Mutex
	refused time.Time              // the agent had no room for a request when
	long    map[*longPoll]struct{} // the blocking queries under way
	views   map[subject]*view      // that are watched
	reads   pace                   // of the short polls
	checks  pace                   // of the Txns that look at many keys
	open    [lookKinds]*check      // the next ones of these, if keys wait for them
}

// perClient has the connections of each client that is still in use: of type
// *connections, by weak.Pointer[api.Client]. An agent counts connections, whichever
// store they serve.
var perClient sync.Map //nolint:gochecknoglobals // the bound is that of a client, which stores share without knowing each other

func connectionsOf(client *api.Client) *connections {
	c := &connections{long: make(map[*longPoll]struct{}), views: make(map[subject]*view)}
	c.requests, c.polls = gate.New(c.room), gate.Fixed(shortPolls)
	c.turn = gate.Yielding(1, checkSpace+long)
	if client == nil {
		return c
	}
	key := weak.Make(client)
	known, shared := perClient.LoadOrStore(key, c)
	if !shared {
		runtime.AddCleanup(client, func(key weak.Pointer[api.Client]) { perClient.Delete(key) }, key)
	}
	return known.(*connections)
}

// room returns how many requests there may be at once.
func (c *connections) room() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.refused) < calm {
		return fewRequests
	}
	return requests
}

// request makes one request that is no watch's, as soon as there is room. One that the
// agent had no connection for has had no effect, so it is made again: another request has
// ended meanwhile, and its connection is open.
func (c *connections) request(ctx context.Context, do func(context.Context) error) error {
	for tries := 1; ; tries++ {
		err := c.requestOnce(ctx, do)
		if !errors.Is(err, errLimited) || tries == refusals {
			return err
		}
		if ended := sleep(ctx, refusalPause()); ended != nil {
			return fmt.Errorf("%w: %w", ended, err)
		}
	}
}

func (c *connections) requestOnce(ctx context.Context, do func(context.Context) error) error {
	leave, err := c.requests.Enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	traced, connected := traceConnection(ctx, c.starved)
	err = do(traced)
	connected()
	return c.heed(ctx, err)
}

// poll makes one short request of a watch, when it is its turn.
func (c *connections) poll(ctx context.Context, do func(context.Context) error) error {
	return c.pollAfter(ctx, c.untilRead, do)
}

// pollAfter makes one short request of watches, when there is room and it has waited.
func (c *connections) pollAfter(ctx context.Context, wait func(now time.Time) time.Duration, do func(context.Context) error) error {
	leave, err := c.polls.Enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	for {
		if err := sleep(ctx, wait(time.Now())); err != nil {
			return err
		}
		if err := do(ctx); !cutOff(ctx, err) {
			return c.heed(ctx, err)
		}
	}
}

// cutOff reports whether a request that nobody ended has lost its connection to the end
// of another, as answers says, but over a transport that does not tell of answers.
func cutOff(ctx context.Context, err error) bool {
	return errors.Is(err, errNeeded) && ctx.Err() == nil
}

// untilRead counts a short poll of one key, and returns how long it has to wait.
func (c *connections) untilRead(now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	burst, space := pollBurst, pollSpace
	if now.Sub(c.refused) < calm {
		burst, space = 1, pollSpaceCalm
	}
	// No more polls wait at once than are let in: turns beyond those were given up.
	if most := now.Add(shortPolls * space); c.reads.due.After(most) {
		c.reads.due = most
	}
	return c.reads.turn(now, burst, space)
}

// busy reports whether a short poll of one key had to wait.
func (c *connections) busy(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	reads := c.reads
	return reads.turn(now, pollBurst, pollSpace) > 0
}

// untilCheck counts a check, and returns how long it has to wait.
func (c *connections) untilCheck(now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.checks.turn(now, 1, checkSpace)
}

// refusalPause returns how long a request that was refused waits.
func refusalPause() time.Duration {
	const pause = 50 * time.Millisecond
	return pause/2 + rand.N(pause)
}

// pause returns how long it is from one look at a key to the next, where it has no blocking
// query.
func (c *connections) pause() time.Duration {
	c.mu.Lock()
	keys := len(c.views)
	c.mu.Unlock()
	every := max(pollEvery, checkSpace*time.Duration(keys)/txnOps)
	return every*3/4 + rand.N(every/2)
}

// heed takes in how a request has ended, and returns its error.
func (c *connections) heed(ctx context.Context, err error) error {
	err = plainly(err)
	if ctx.Err() == nil && refusesConnection(err) && !errors.Is(err, errNeeded) {
		c.retreat(func(p *longPoll) bool { return !p.trial })
	}
	return err
}

// starved ends all blocking queries, since the client has no connection for a request.
func (c *connections) starved() { c.retreat(func(*longPoll) bool { return true }) }

// retreat has few requests for a while, since one has found no connection, and ends some
// blocking queries.
func (c *connections) retreat(ends func(*longPoll) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = time.Now()
	for p := range c.long {
		if !p.answered && ends(p) {
			p.cancel(errNeeded)
		}
	}
}
