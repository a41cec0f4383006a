//go:build linux

package faults

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/witness"
	"github.com/electkv/election/kv/kvfault"
)

// partVariable is the environment variable that makes this program a candidate:
// it holds its part, in JSON.
const partVariable = "ELECTION_FAULTS_PART"

// A part is what a process is told when it starts.
type part struct {
	Who   []string // its candidates, mostly one
	Store string   // the kind of store: see open
	// Observed says that candidates judge when a record has expired.
	Observed bool
	Addrs    []string          // of the servers
	Database string            // on a server that has several
	Peers    *terms            // of members that keep safes together
	Links    map[string]string // the address to use in the place of a server's own
	Name     string            // of the election
	TTL      time.Duration
	Fence    string // the socket of what it writes to while it leads

	User, Password, Token string        // for the store, if it wants them
	Quarantine, Backstop  time.Duration // of the adapter, if it has them
	Asked                 bool          // it answers over HTTP: see web
	Bug                   string        // a planted one: see plant
	NoHeir                bool          // nobody is heir: see election.Options
	Quiet                 bool          // it proclaims nothing, so that nothing but its refreshes tells it of a loss
	crowd                 int           // for the stage: so many candidates in each process; zero: one
	Neighbours            int           // how many other elections its process leads, for the first candidate
	Turn                  time.Duration // the work is over after so long, and the candidate stands again; zero: never
	keeper                *keeper       // of the process: where keep-alives get lost, on etcd
}

// act is a candidate's main. It campaigns until it is told to close, or its
// standard input ends.
func act(text string) int {
	var p part
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		fmt.Fprintln(os.Stderr, "the part cannot be read:", err)
		return 2
	}
	p.keeper = &keeper{name: p.Name, denies: p.Bug == bugOpenLease}
	if p.Bug == bugTxnAlone {
		p.keeper.lies = p.TTL
	}
	store, closeStore, err := open(p)
	if err != nil {
		fmt.Fprintln(os.Stderr, "the store cannot be opened:", err)
		return 2
	}
	defer closeStore()
	ctx, cancel := context.WithCancelCause(context.Background())
	faults := kvfault.Wrap(store)
	process := &process{
		part:    p,
		tell:    witness.Tell(os.Stdout, cancel),
		log:     slog.New(slog.NewTextHandler(os.Stderr, nil)),
		faults:  faults,
		freezer: &freezer{Store: faults.Store},
		close:   cancel,
		orders:  make(chan string, 1),
	}
	process.stand, process.quit = context.WithCancelCause(ctx)
	if p.Asked {
		if process.web, err = newWeb(p); err != nil {
			fmt.Fprintln(os.Stderr, "it cannot answer over HTTP:", err)
			return 2
		}
	}
	go process.listen(os.Stdin)
	errs := make([]error, len(p.Who))
	var all sync.WaitGroup
	for i, who := range p.Who {
		all.Go(func() { errs[i] = process.candidate(who).run(ctx) })
	}
	all.Wait()
	process.web.stop()
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, "it ended by itself:", err)
		return 1
	}
	if p.Store == kindPaxos { // it has goroutines of its own until then
		closeStore()
	}
	count, stacks := leftovers()
	for _, who := range p.Who {
		process.tell(history.Event{Kind: history.Left, Who: who, Count: count, Text: stacks})
	}
	return 0
}

// onOrder is how a process exits that was told to.
const onOrder = 7

// These are why a candidate leaves that was told to, with its process and without it.
var (
	errClosed = errors.New("told to close")
	errQuit   = errors.New("told to quit")
)

// A process is the one in which a candidate runs, as it sees itself.
type process struct {
	part
	tell    func(history.Event)
	log     *slog.Logger
	faults  *kvfault.Link
	freezer *freezer
	close   context.CancelCauseFunc
	orders  chan string // for whoever leads: resign, panic
	frozen  atomic.Bool // the next step of work stops before it writes
	near    neighbours
	web     *web
	stand   context.Context // in which the first candidate stands, until it is told to quit
	quit    context.CancelCauseFunc
}

// sleep stops this process until somebody wakes it.
func (p *process) sleep(where string) {
	woken := make(chan os.Signal, 1)
	signal.Notify(woken, syscall.SIGCONT)
	defer signal.Stop(woken)
	p.tell(history.Event{Kind: history.Stopped, Who: p.Who[0], Text: where})
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
		panic(err)
	}
	<-woken // another thread may take the signal, a moment later
}

// listen does what the lines of in say; see order.
func (p *process) listen(in io.Reader) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if err := p.obey(strings.Fields(lines.Text())); err != nil {
			fmt.Fprintf(os.Stderr, "order %q: %v\n", lines.Text(), err)
			os.Exit(2)
		}
	}
	os.Exit(3) // the stage is gone
}

// obey carries out one order:
//
//	close                      the context of Run ends
//	resign                     the leader resigns
//	panic                      the leader's work panics
//	exit                       the process ends without a goodbye
//	fault OP KIND [N]          of package kvfault: droprequest, dropreply, hang, fail, withhold; the next N calls
//	delay OP request|reply D   of package kvfault
//	quit                       the campaign of the first candidate ends, and the process goes on
//	unkeep                     keep-alives of leases are lost, on etcd
//	uncreate                   creates of the leader's record are lost, on etcd
//	arrive                     the first of these is carried out, and no more are lost
//	heal                       takes these back
//	count                      tells of its neighbours; see counted
//	freeze OP before|after     the process stops itself at its next call of OP, or when the answer is there
//	freeze work                the process stops itself after the next look at its term, before the write that follows
func (p *process) obey(words []string) error {
	if len(words) == 0 {
		return nil
	}
	switch words[0] {
	case "close":
		p.close(errClosed)
	case "exit":
		os.Exit(onOrder)
	case "resign", "panic":
		select {
		case p.orders <- words[0]:
		default: // nobody has taken the one before
		}
	case "quit":
		p.quit(errQuit)
	case "unkeep":
		p.keeper.loses.Store(true)
	case "uncreate":
		p.keeper.loseCreates()
	case "arrive":
		return p.keeper.arrive()
	case "heal":
		p.faults.Heal()
		p.keeper.loses.Store(false)
	case "count":
		p.count()
	case "fault", "delay":
		return p.spoil(words)
	case "freeze":
		if len(words) == 2 && words[1] == "work" {
			p.frozen.Store(true)
			return nil
		}
		if len(words) != 3 {
			return errors.New("want an operation, and before or after")
		}
		p.freezer.next(words[1], words[2] == "after", p.sleep)
	default:
		return errors.New("unknown")
	}
	return nil
}

// spoil sets a fault of package kvfault.
func (p *process) spoil(words []string) error {
	if len(words) < 3 {
		return errors.New("want an operation and a kind")
	}
	op, err := opOf(words[1])
	if err != nil {
		return err
	}
	on := p.faults.On(op)
	if words[0] == "delay" {
		d, err := time.ParseDuration(words[len(words)-1])
		if err != nil {
			return err
		}
		if words[2] == "request" {
			on.DelayRequests(d)
		} else {
			on.DelayReplies(d)
		}
		return nil
	}
	if len(words) == 4 {
		n := 0
		if _, err := fmt.Sscan(words[3], &n); err != nil {
			return err
		}
		on = on.Next(n)
	}
	switch words[2] {
	case "droprequest":
		on.DropRequests()
	case "dropreply":
		on.DropReplies()
	case "hang":
		on.Hang()
	case "fail":
		on.Fail(errors.New("told to fail"))
	case "failreply":
		on.FailReplies(errors.New("told to fail"))
	case "withhold":
		on.Withhold()
	default:
		return errors.New("unknown kind of fault")
	}
	return nil
}

func opOf(name string) (kvfault.Op, error) {
	for op := kvfault.Create; op <= kvfault.HandOver; op++ {
		if op.String() == name {
			return op, nil
		}
	}
	return 0, fmt.Errorf("unknown operation %q", name)
}
