package election

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/electkv/election/internal/gather"
	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/kv"
)

var (
	// ErrLost is the cause of a term that ended although its leader did not give it
	// up: the lease was not refreshed in time, or the record is gone or replaced.
	ErrLost = errors.New("election: leadership lost")

	// ErrResigned is the cause of a term that its leader gave up: by Resign, on request, to
	// hand over, or because its Health check failed, its work returned or its context ended.
	ErrResigned = errors.New("election: resigned")

	// ErrHeld means that the safe is not free: a leader or another program's lock has it,
	// or the store keeps it closed for a while after its last owner. TryCampaign and TryRun
	// also return it while a hold keeps the election closed. It is the error with which
	// stores refuse a create.
	ErrHeld = kv.ErrHeld

	// ErrNoHeir means that nobody is next in the succession, or that the candidate
	// that was asked for is not.
	ErrNoHeir = errors.New("election: no such heir")

	// ErrStopped is matched by the error of Run, TryRun, Notify and Attend when they return
	// because their context has ended, as they were asked to.
	ErrStopped = errors.New("election: stopped")

	// ErrNoLeader means that nobody leads at the moment.
	ErrNoLeader = errors.New("election: nobody leads")
)

const (
	defaultTTL = 15 * time.Second
	maxName    = 512
	maxValue   = 64 << 10
	maxHeirs   = 64

	longestStability = time.Duration(math.MaxInt64 >> machine.MaxStrikes)
)

// Options say how a candidate campaigns and leads. The zero value of each field
// means its default.
type Options struct {
	// ID names the candidate to people: in Leader, in logs, in the store. It should be
	// unique, since successions and transfers know candidates by their IDs; safety does not
	// depend on it. Default: host name and process id.
	ID string

	// Value is published with the ID, the leader's address for example. At most
	// 64 KiB. A leader can change it with Term.Proclaim.
	Value string

	// TTL is how long a leader that vanished keeps others out. A shorter TTL means a
	// faster failover, and less patience with a slow store or network. How exactly a
	// store keeps it is in its Guarantees. Default: 15 s.
	TTL time.Duration

	// Margin is the time from the end of a term that is not refreshed to the moment when the
	// store may give the lease to another candidate. It covers clocks that run at different
	// rates, and the time that work needs to stop after its context has ended. If your work
	// needs longer, raise it. The package documentation has the minimum that is safe. Default: a
	// tenth of the TTL, or that minimum if it is larger.
	Margin time.Duration

	// Succession is the order in which candidates succeed each other: FirstCome,
	// ByRank, Ring, ByList, or your own. Candidates that wait compete for a second
	// safe, the heir's, which is called NAME:heir. Only the heir watches the leader,
	// which hands over to it in one write. Give all candidates of an election the
	// same. Default: FirstCome; NoHeir in a store that keeps lines (kv.Queue), where
	// candidates that wait have an order already, and for TryCampaign and TryRun.
	Succession Succession

	// NoHeir turns the heir off: the candidate does not compete for a second safe, and
	// as leader it leaves the safe vacant at the end of a term, for the first candidate to
	// claim it. It saves a leader one watch. Choose it if nothing may be written beside
	// the safe, or if other programs that wait for the same lock should get their
	// turn.
	NoHeir bool

	// Rank says how much a candidate is preferred, if the succession uses
	// ranks: higher comes first. Not below zero: to observe without competing, use Watch.
	Rank int

	// Heirs are the IDs of the candidates that should follow this one as leader, in
	// order, for a succession that uses them (ByList). A leader can change them with
	// Term.SetHeirs. Default: those of the leader before it.
	Heirs []string

	// Stability is how long an heir that comes before the leader in the order must have
	// been heir, without a break, before the leader gives way to it. For a candidate whose
	// terms keep ending before they have lasted that long, the wait doubles each
	// time, up to 64 times. Default: three TTLs.
	Stability time.Duration

	// MaxTerm is how long a leader leads if there is an heir to hand over to. It must not
	// be less than the TTL. Default: no limit.
	MaxTerm time.Duration

	// Hold closes the election to all candidates, this one too, for at least this long
	// after the work began, even if the work ends sooner or the process or its host
	// dies. It is for work that runs once per tick, even if a host's clock is late.
	//
	// The candidate that is elected closes the election before Run calls lead or
	// Campaign returns. If the election is closed already, the candidate waits, as
	// leader, until that is over; TryCampaign and TryRun give up with [ErrHeld]. The hold
	// is a record of its own in the store, with a TTL of Hold plus (TTL − Margin)/3. It
	// lasts as long as the store lets such a record live (kv.Lifetime: in Consul twice
	// as long). Give all candidates of an election the same Hold: one without it is not
	// kept out. A store whose observers judge expiry keeps no holds (kv.ErrInvalid). If
	// the store does not answer while the hold is made, Run, Campaign and the others may
	// return nearly a TTL after their context has ended. Default: none.
	Hold time.Duration

	// Requests lets others ask the leader to resign or to hand over: RequestResign,
	// RequestTransfer, and the commands elect resign and elect transfer. It costs a
	// leader one more watch. It is always on where a Succession is given.
	Requests bool

	// Roster lists the candidate for others ([Members], elect status) from the beginning of Run
	// or Campaign to the end: it keeps a record of its own beside the election, called
	// NAME:roster:KEY. Where the candidate leads, or another candidate of the process does, the
	// record is refreshed in the same requests; a candidate that only waits sends about two per
	// TTL, for all elections of the process together. Nothing in the election waits for the
	// roster, or fails with it. The last thing that Run and Resign do is to remove the
	// record, which may take up to a sixth of the TTL. TryCampaign and TryRun keep none. The store has to
	// keep rosters (kv.Roster); New says so if it does not. Default: off.
	Roster bool

	// Hooks are told what the candidate does, to count and to measure it. Default: none.
	Hooks *Hooks

	// OnRole, if not nil, is called after each change of the candidate's role. Calls come
	// one at a time and in order, on a goroutine of their own, so the role may have
	// changed again by then. Run and TryRun wait for these calls before they call lead. Run,
	// TryRun, Campaign, TryCampaign, Resign, Transfer and Attend wait for them before they
	// return (Resign and Transfer do not if they are called under Run or TryRun). Each waits
	// for a second at most. Nothing else waits. If the hook blocks, the oldest calls are
	// dropped.
	OnRole func(Role)

	// Health, if not nil, is called before the candidate claims a vacant safe, and a
	// few times per TTL while it leads or is heir. While it returns an error the
	// candidate does not compete, and a leader steps down. It must return when its
	// context ends; a check that takes longer counts as failed. While every candidate
	// is unhealthy, nobody leads.
	Health func(context.Context) error

	// Logger gets one record for each change of state, in order. If its handler blocks,
	// the oldest records are dropped, and counted in a record of their own. Default: no
	// logs.
	Logger *slog.Logger
}

// A Candidate competes in one election. Several goroutines may use it; each campaign
// is independent. Between campaigns it remembers how long leaders led, the
// election's last terms ([Options].Succession, [History]), how crowded the election was, and when
// the store was heard last.
type Candidate struct {
	store kv.Store
	batch kv.Batch // the same, if it refreshes many records at once
	name  string
	opts  Options
	pace  pace
	clock clock
	log   *slog.Logger
	logs  *outbox // through which the log goes

	owner   *Candidate // this one, also for the copies that stand for a safe beside the leader's
	newest  *atomic.Pointer[Term]
	contact *atomic.Int64 // when the store last answered, in Unix milliseconds
	roles   *roles
	memory  *memory

	enrolled *enrolled
}

// New returns a candidate in the election called name. All candidates that use the
// same name in the same store compete with each other. New sends no requests. Options
// may be nil.
//
// The error says which argument is wrong, and what would be right: an empty or
// overlong name, a TTL that the store cannot honour, a margin that does not fit
// the TTL, a succession that makes no sense, a roster in a store that keeps none, a store whose
// wrapper hides that candidates wait in line (kv.Queue).
func New(store kv.Store, name string, opts *Options) (*Candidate, error) {
	if store == nil {
		return nil, errors.New("election: store is nil")
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	o := Options{}
	if opts != nil {
		o = *opts
	}
	o = o.withDefaults(store)
	if err := checkText("ID", o.ID); err != nil {
		return nil, err
	}
	if len(o.Value) > maxValue {
		return nil, fmt.Errorf("election: value of %d bytes is too long: at most %d", len(o.Value), maxValue)
	}
	p, err := o.paceFor(store)
	if err != nil {
		return nil, err
	}
	if err := checkLines(store, o.TTL); err != nil {
		return nil, err
	}
	if err := o.checkSuccession(); err != nil {
		return nil, err
	}
	if err := checkHold(store, o.Hold, p); err != nil {
		return nil, err
	}
	if o.Roster {
		if err := checkRoster(store); err != nil {
			return nil, err
		}
	}
	logs := &outbox{}
	c := &Candidate{
		store: store,
		batch: gather.From(store),
		name:  name,
		opts:  o,
		pace:  p,
		clock: clock{epoch: time.Now()},
		log:   newLog(o.Logger, logs).With("election", name, "id", o.ID),
		logs:  logs,

		newest:  &atomic.Pointer[Term]{},
		contact: &atomic.Int64{},
		roles:   &roles{tell: o.OnRole, last: RoleIdle},
		memory:  &memory{},

		enrolled: &enrolled{tag: nonce()},
	}
	c.owner = c
	return c, nil
}

// IsLeader reports whether the candidate leads at this very moment, as [Term.Err] does.
// A candidate that waits until an election is open (Options.Hold) does not lead yet.
// Any time may pass between the answer and what the caller does next. So do work that must
// not be done twice in lead, under its context and with its token.
func (c *Candidate) IsLeader() bool {
	t := c.newest.Load()
	return t != nil && t.Err() == nil
}

func (o Options) withDefaults(store kv.Store) Options {
	if o.ID == "" {
		o.ID = defaultID()
	}
	if o.TTL == 0 {
		o.TTL = defaultTTL
	}
	if o.Stability == 0 {
		o.Stability = 3 * o.TTL
	}
	o.NoHeir = o.NoHeir || o.Succession == nil && keepsLines(store)
	o.Heirs = slices.Clone(o.Heirs)
	if o.Hooks == nil {
		o.Hooks = noHooks
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// checkSuccession refuses options that contradict each other.
func (o Options) checkSuccession() error {
	if err := checkHeirs(o.Heirs); err != nil {
		return err
	}
	switch {
	case o.Rank < 0:
		return fmt.Errorf("election: rank %d is below zero: use Watch or Current for a process that never leads", o.Rank)
	case o.Stability < 0:
		return fmt.Errorf("election: stability %v is negative: leave it out for three TTLs", o.Stability)
	case o.Stability > longestStability:
		return fmt.Errorf("election: stability %v is too long: at most %v", o.Stability, longestStability.Truncate(time.Hour))
	case o.MaxTerm < 0:
		return fmt.Errorf("election: longest term %v is negative: leave it out for terms of any length", o.MaxTerm)
	case o.MaxTerm > 0 && o.MaxTerm < o.TTL:
		return fmt.Errorf("election: longest term %v is shorter than the TTL: use at least %v", o.MaxTerm, o.TTL)
	case o.NoHeir && o.Succession != nil:
		return errors.New("election: Succession and NoHeir contradict each other: leave one of them out")
	case o.NoHeir && o.MaxTerm > 0:
		return errors.New("election: a longest term needs an heir to hand over to: use it with a Succession (for example FirstCome), and without NoHeir")
	case len(o.Heirs) > 0 && o.Succession == nil:
		return errHeedless
	}
	return nil
}

// errHeedless means that the succession does not use the leader's list of heirs.
var errHeedless = errors.New("election: heirs need a Succession that uses them: ByList")

// checkHeirs refuses lists of heirs that cannot be published, or make no sense.
func checkHeirs(ids []string) error {
	if len(ids) > maxHeirs {
		return fmt.Errorf("election: %d heirs are too many: at most %d", len(ids), maxHeirs)
	}
	for i, id := range ids {
		if err := checkText("heir", id); err != nil {
			return err
		}
		if slices.Contains(ids[:i], id) {
			return fmt.Errorf("election: heir %q is listed twice: its first place is the one that counts", id)
		}
	}
	return nil
}

func defaultID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}

// checkText refuses names and IDs that people could not read back.
func checkText(what, s string) error {
	switch {
	case s == "":
		return fmt.Errorf("election: %s is empty", what)
	case len(s) > maxName:
		return fmt.Errorf("election: %s of %d bytes is too long: at most %d", what, len(s), maxName)
	case !utf8.ValidString(s):
		return fmt.Errorf("election: %s %q is not valid UTF-8", what, s)
	case strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("election: %s %q contains control characters", what, s)
	}
	return nil
}
