//go:build linux

package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/witness"
)

// partVariable is the environment variable that makes this program a process of
// a fleet: it holds its part, in JSON. Commands that start a child pass it on.
const partVariable = "ELECTION_INTEROP_PART"

// childArgument is what the child of a lock command is started with.
const childArgument = "interop-child"

// A part is what a process is told when it starts.
type part struct {
	Who    string
	Lock   string // which lock it uses: see oldLocks, or ours
	Store  string // what ours uses: see part.open
	Addr   string // of the server, by the process's own link
	Key    string // what the lock is called
	Prefix string // what stands before that in its key,
	Suffix string // and what behind it
	TTL    time.Duration
	Socket string // where events go to, and orders come from

	Hold [2]time.Duration // most terms are given up after a time between these
	Rest [2]time.Duration // and so long after it the process stands again

	Backstop time.Duration // of ours, in Redis

	Layout  string // of safes in etcd
	Plain   bool   // ours publishes its value as it is
	Bug     string // planted in ours: see plant
	Command string // the executable of a lock that is one
}

// A process is one of a fleet, as it sees itself.
type process struct {
	part
	log    *slog.Logger
	orders chan struct{} // for whoever holds: give up
	nth    int           // how often it has stood
	tell   func(history.Event)
}

// act is the main of a process. It goes on until it is told to close, or the
// fleet is gone.
func act(text string) int {
	p := &process{log: slog.New(slog.NewTextHandler(os.Stderr, nil)), orders: make(chan struct{}, 1)}
	if err := json.Unmarshal([]byte(text), &p.part); err != nil {
		fmt.Fprintln(os.Stderr, "the part cannot be read:", err)
		return 2
	}
	conn, err := net.Dial("unix", p.Socket)
	if err != nil {
		fmt.Fprintln(os.Stderr, "the fleet is gone:", err)
		return 3
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	p.tell = witness.Tell(conn, cancel)
	go p.listen(conn, cancel)
	if len(os.Args) > 1 && os.Args[1] == childArgument {
		return p.child(ctx)
	}
	p.note(history.Event{Kind: history.Ready})
	if p.Lock == ours {
		err = p.lead(ctx)
	} else {
		err = p.hold(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "it ended by itself:", err)
		return 1
	}
	p.note(history.Event{Kind: history.Left})
	return 0
}

// note returns when the event is out of this process's hands.
func (p *process) note(e history.Event) {
	e.Who = p.Who
	p.tell(e)
}

// listen does what the fleet says: "resign" gives up what is held, "close" ends
// the process after that.
func (p *process) listen(conn net.Conn, closed func(error)) {
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if lines.Text() == "close" {
			closed(nil)
			continue
		}
		select {
		case p.orders <- struct{}{}:
		default: // nobody has taken the one before
		}
	}
	os.Exit(3) // the fleet is gone
}

// forget drops an order that was for the term before.
func (p *process) forget() {
	select {
	case <-p.orders:
	default:
	}
}

// pass lets time pass, unless ctx ends first.
func pass(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// between returns a time between two.
func between(d [2]time.Duration) time.Duration { return d[0] + rand.N(d[1]-d[0]+1) }

// turn returns how long a term is to last: for most of them a while, for some so
// long that nothing but renewals keeps them, also where a record outlives its TTL.
func (p *process) turn() time.Duration {
	if rand.N(4) == 0 {
		return long(p.TTL)
	}
	return between(p.Hold)
}

// long is how long a long term lasts: a session of Consul may live for two TTLs.
func long(ttl time.Duration) time.Duration { return ttl * 5 / 2 }

// sign returns a text that nobody has published before.
func (p *process) sign() string {
	p.nth++
	return fmt.Sprintf("%s.%d.%d", p.Who, os.Getpid(), p.nth)
}

// legible returns a value as a text that fits into a history: itself, if it is
// nothing but printable ASCII.
func legible(value string) string {
	quoted := strconv.QuoteToASCII(value)
	if quoted == `"`+value+`"` {
		return value
	}
	return quoted
}
