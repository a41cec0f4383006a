package sqlkv

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// parting is how long a connection's end is waited for.
	parting = time.Second

	// silence is after how long without news the connection is tried.
	silence = 5 * time.Second

	// lull is how long the hub waits, or up to twice that, before it connects
	// again.
	lull = time.Second
)

// errUnheard means that there is nothing to listen to.
var errUnheard = errors.New("the server does not tell of changes here")

// A hub hands the hints of PostgreSQL's NOTIFY to the watches of one store. They
// share one connection beside the pool, so that a pool of one is not taken up by
// it; it lasts as long as anybody watches. Hints may be lost, doubled or false:
// they only say that it may be worth to look.
type hub struct {
	db      *sql.DB
	channel string

	mu   sync.Mutex
	ears map[string]map[chan struct{}]struct{} // by name
	now  *listening                            // nil while nobody watches
}

// listening is what a hub does while anybody watches.
type listening struct {
	stop context.CancelFunc
	done chan struct{}
	on   atomic.Bool // the server tells of changes
}

func newHub(db *sql.DB, channel string) *hub {
	return &hub{db: db, channel: channel, ears: make(map[string]map[chan struct{}]struct{})}
}

// join returns a channel that is given a value when it may be worth to look at
// the safe, and also when hints begin or cease to come. The caller calls leave in
// the end.
func (h *hub) join(name string) (hints <-chan struct{}, leave func()) {
	ear := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now == nil {
		ctx, stop := context.WithCancel(context.Background())
		h.now = &listening{stop: stop, done: make(chan struct{})}
		go h.listen(ctx, h.now)
	}
	if h.ears[name] == nil {
		h.ears[name] = make(map[chan struct{}]struct{})
	}
	h.ears[name][ear] = struct{}{}
	return ear, func() { h.leave(name, ear) }
}

// leave takes an ear away, and after the last one waits for the connection to be
// given up.
func (h *hub) leave(name string, ear chan struct{}) {
	h.mu.Lock()
	delete(h.ears[name], ear)
	if len(h.ears[name]) == 0 {
		delete(h.ears, name)
	}
	now := h.now
	last := len(h.ears) == 0
	if last {
		h.now = nil
	}
	h.mu.Unlock()
	if !last {
		return
	}
	now.stop()
	timer := time.NewTimer(2 * parting)
	defer timer.Stop()
	select {
	case <-now.done:
	case <-timer.C:
	}
}

// listens reports whether changes are told at this time.
func (h *hub) listens() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now != nil && h.now.on.Load()
}

// hand wakes those who watch a safe.
func (h *hub) hand(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for ear := range h.ears[name] {
		nudge(ear)
	}
}

// handAll wakes all, since something may have been missed.
func (h *hub) handAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, ears := range h.ears {
		for ear := range ears {
			nudge(ear)
		}
	}
}

// nudge gives the channel a value unless it has one.
func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// listen keeps a connection that listens, until ctx ends or there is nothing to
// listen to. What goes wrong with it is no news: the watches look by themselves,
// and their looks tell what is wrong with the server.
func (h *hub) listen(ctx context.Context, now *listening) {
	defer close(now.done)
	for {
		err := h.session(ctx, now)
		if ctx.Err() != nil || errors.Is(err, errUnheard) {
			return
		}
		timer := time.NewTimer(lull + rand.N(lull))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// session listens on one connection until that ends.
func (h *hub) session(ctx context.Context, now *listening) error {
	conn, err := h.connect(ctx)
	if err != nil {
		return err
	}
	defer func() {
		now.on.Store(false)
		h.handAll()
		ctx, cancel := context.WithTimeout(context.Background(), parting)
		defer cancel()
		_ = conn.Close(ctx) // there is nothing that it could have to say
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+PostgreSQL.quote(h.channel)); err != nil {
		return err
	}
	now.on.Store(true)
	h.handAll() // what happened before is looked up
	for {
		told, err := h.next(ctx, conn)
		if err != nil {
			return err
		}
		if told != "" {
			h.hand(told)
		}
	}
}

// next returns the name in the next notice, or nothing if none has come for a
// while and the connection is well.
func (h *hub) next(ctx context.Context, conn *pgx.Conn) (string, error) {
	wait, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	notice, err := conn.WaitForNotification(wait)
	if err == nil {
		return notice.Payload, nil
	}
	if ctx.Err() != nil || wait.Err() == nil || conn.IsClosed() {
		return "", err
	}
	ping, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	return "", conn.Ping(ping)
}

// connect makes a connection like those of the pool, beside it. Through a proxy
// that hands a server's connection from one client to the next, nothing can be
// heard, and others would hear what is meant for us. Such a proxy gives its
// clients another key than the server's, and with it another process id.
func (h *hub) connect(ctx context.Context) (*pgx.Conn, error) {
	config, err := h.config(ctx)
	if err != nil {
		return nil, err
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	config.StatementCacheCapacity, config.DescriptionCacheCapacity = 0, 0
	config.OnNotification = nil // it would hand them to the connection asked
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	var pid uint32
	err = conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid)
	if err == nil && pid != conn.PgConn().PID() {
		err = errUnheard
	}
	if err != nil {
		ctx, cancel := context.WithTimeout(context.Background(), parting)
		defer cancel()
		_ = conn.Close(ctx) // the error before is the one to tell
		return nil, err
	}
	return conn, nil
}

// config asks the pool how it connects.
func (h *hub) config(ctx context.Context) (*pgx.ConnConfig, error) {
	lent, err := h.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	var config *pgx.ConnConfig
	err = lent.Raw(func(conn any) error {
		c, ok := conn.(interface{ Conn() *pgx.Conn })
		if !ok {
			return errUnheard
		}
		config = c.Conn().Config()
		return nil
	})
	return config, errors.Join(err, lent.Close())
}
