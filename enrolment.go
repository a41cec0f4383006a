package election

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/electkv/election/internal/gather"
	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/internal/throttle"
	"github.com/electkv/election/kv"
)

// An enrolment keeps a record of the candidate in the election's roster, as well as the store
// lets it. It has no part in the election: no campaign waits for it, and it takes no lock of one.
//
// While the record only has to be refreshed, it has no goroutine.
type enrolment struct {
	*Candidate // with the roster as its safe
	note       string
	failed     chan error // takes why the store will never take the record

	ctx context.Context
	end context.CancelFunc

	mu       sync.Mutex
	draft    kv.Held // what it tries to put there
	left     kv.Held // what is removed before that, or left to expire; it has no name if there is none
	there    bool    // it is there, as far as is known: draft is how it stands
	doubt    bool    // a create had no clear answer
	over     bool
	proved   time.Time // when the store last confirmed that it is there
	compared bool      // with the IDs of the others
	cancel   func()    // calls off the refresh that waits or is on its way; nil if there was none
	timer    *time.Timer
	retry    backoff
	trouble  complaint
	jobs     sync.WaitGroup
}

// A memberNote is what the record of a member says of it beside its signature and value.
type memberNote struct {
	Rank     int   `json:"rank,omitempty"`
	Since    int64 `json:"since,omitempty"` // by its own wall clock, in Unix milliseconds: for people only
	Observes bool  `json:"observes,omitempty"`
}

// serials tells apart the records of one candidate.
var serials atomic.Uint64 //nolint:gochecknoglobals // as the numbers of campaigns

// enrol begins to keep a record. Tag is in the keys of its records, and in no others'.
func (c *Candidate) enrol(ctx context.Context, tag string, observes bool) *enrolment {
	n := memberNote{Rank: c.opts.Rank, Since: time.Now().UnixMilli(), Observes: observes}
	text, err := json.Marshal(n)
	if err != nil {
		panic("election: a member's note always has a text: " + err.Error())
	}
	e := &enrolment{
		Candidate: c.beside(c.name, rosterName),
		note:      string(text),
		failed:    make(chan error, 1),
		retry:     c.pace.backoff(),
	}
	e.ctx, e.end = context.WithCancel(context.WithoutCancel(ctx))
	e.mu.Lock()
	defer e.mu.Unlock()
	e.renew(tag)
	e.start(e.claim)
	return e
}

// renew makes a draft whose key was never used. It is called with mu held.
func (e *enrolment) renew(tag string) {
	key := fmt.Sprintf("%s-%d", tag, serials.Add(1))
	e.there, e.doubt = false, false
	e.draft = kv.Held{
		Name:   kv.MemberName(e.name, key),
		Record: kv.Record{Signature: e.opts.ID + "/" + key, Value: e.opts.Value, Note: e.note, TTL: e.opts.TTL, Shared: true},
		Share:  true,
	}
}

// tagOf returns what the signatures of one candidate that keeps a record have in common, or
// nothing.
func tagOf(signature string) string {
	tag, _, ok := strings.Cut(signature[len(machine.IDOf(signature)):], "-")
	if !ok || len(tag) < 2 {
		return ""
	}
	return tag[1:]
}

// start does a job on a goroutine of its own. It is called with mu held.
func (e *enrolment) start(job func()) {
	if !e.over {
		e.jobs.Go(job)
	}
}

// claim makes one attempt to put the record there, when the store has room for that.
func (e *enrolment) claim() {
	leave, err := throttle.EnterBehind(e.ctx, e.store)
	if err != nil {
		return
	}
	defer leave()
	e.mu.Lock()
	draft, left := e.draft, e.left
	e.left = kv.Held{}
	e.mu.Unlock()
	if left.Name != "" {
		_ = e.attempt(e.ctx, func(ctx context.Context) error {
			return e.observed().Delete(ctx, left.Name, left.Record)
		})
	}
	var rec kv.Record
	err = e.attempt(e.ctx, func(ctx context.Context) (err error) {
		rec, err = e.observed().Create(ctx, draft.Name, draft.Record)
		if errors.Is(err, kv.ErrHeld) {
			rec, err = e.find(ctx, draft)
		}
		return err
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err == nil:
		e.entered(rec)
	case errors.Is(err, kv.ErrInvalid):
		e.log.Warn("the store takes no record for the roster", "event", "roster_refused", "error", err)
		e.failed <- err
	case errors.Is(err, errTakenKey):
		e.renew(tagOf(draft.Record.Signature))
		fallthrough
	default:
		e.doubt = e.doubt || !errors.Is(err, kv.ErrHeld)
		if e.troubled(err) {
			e.log.Warn("cannot enter the roster", "event", "roster_not_entered", "error", err)
		}
		e.later(func() { e.start(e.claim) })
	}
}

// errTakenKey is why a record gets another key.
var errTakenKey = errors.New("another program has put something at the key of the record")

// find returns the record if it is there: an earlier create was carried out.
func (e *enrolment) find(ctx context.Context, draft kv.Held) (kv.Record, error) {
	rec, err := e.observed().Get(ctx, draft.Name)
	switch {
	case errors.Is(err, kv.ErrVacant): // it has just expired, or the store keeps the safe closed
		return rec, kv.ErrHeld
	case err == nil && rec.Signature != draft.Record.Signature:
		return rec, errTakenKey
	}
	return rec, err
}

// entered takes in that the record is there. It is called with mu held.
func (e *enrolment) entered(rec kv.Record) {
	e.log.Debug("entered the roster", "event", "roster_entered", "number", rec.Token)
	e.there = true
	e.confirmed(rec)
	if !e.compared {
		e.compared = true
		e.start(e.compare)
	}
}

// confirmed takes in that the record is there, and has it refreshed after a while. It is called
// with mu held.
func (e *enrolment) confirmed(rec kv.Record) {
	e.draft.Record, e.proved = rec, time.Now()
	e.retry.reset()
	e.refreshIn(e.pace.Refresh/2, e.pace.Refresh*3/2)
}

// refreshIn has the record refreshed with others after a time, or alone after a longer one. It
// is called with mu held.
func (e *enrolment) refreshIn(after, latest time.Duration) {
	switch {
	case e.over:
	case e.batch == nil:
		e.timer = time.AfterFunc(latest, func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.start(e.refreshAlone)
		})
	default:
		e.jobs.Add(1)
		e.cancel = gather.Ride(e.batch, e.pace.window, after, latest, e.pace.Attempt, e.draft, func(v gather.Verdict) {
			defer e.jobs.Done()
			e.hookRide(v)
			e.refreshed(v.Record, v.Err)
		})
	}
}

// hookRide tells of a refresh that went with others, unless it was called off.
func (e *enrolment) hookRide(v gather.Verdict) {
	hook := e.opts.Hooks.StoreDone
	if hook == nil || errors.Is(v.Err, context.Canceled) {
		return
	}
	now := time.Now()
	tell(e.ctx, e.opts.Hooks, sampleRoom, hook, StoreDoneInfo{
		HookInfo{e.owner, 0, now}, OpRefresh, rosterName, now.Sub(v.Opened), outcomeOf(machine.Refresh, v.Err), v.Err,
	})
}

func (e *enrolment) refreshAlone() {
	e.mu.Lock()
	held := e.draft
	e.mu.Unlock()
	var rec kv.Record
	err := e.attempt(e.ctx, func(ctx context.Context) (err error) {
		rec, err = e.observed().Refresh(ctx, held.Name, held.Record)
		return err
	})
	e.refreshed(rec, err)
}

// refreshed takes in the outcome of a refresh. A record that was not refreshed for a TTL may never be
// again, so another takes its place: Consul may be about to end its session, and then no renewal
// counts any more.
func (e *enrolment) refreshed(rec kv.Record, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.over:
	case err == nil:
		e.confirmed(rec)
	case errors.Is(err, kv.ErrStale):
		e.log.Info("the record in the roster is gone, and is entered again", "event", "roster_lost", "number", e.draft.Record.Token)
		e.renew(tagOf(e.draft.Record.Signature))
		e.later(func() { e.start(e.claim) })
	case time.Since(e.proved) >= e.draft.Record.TTL:
		e.log.Info("the record in the roster was not refreshed within its TTL, and another is entered", "event", "roster_lost", "number", e.draft.Record.Token, "error", err)
		e.left = e.draft
		e.renew(tagOf(e.draft.Record.Signature))
		e.later(func() { e.start(e.claim) })
	default:
		if e.troubled(err) {
			e.log.Warn("cannot refresh the record in the roster", "event", "roster_not_refreshed", "error", err)
		}
		e.refreshIn(0, e.retry.pause())
	}
}

// later does something after a pause. It is called with mu held.
func (e *enrolment) later(do func()) {
	if e.over {
		return
	}
	e.timer = time.AfterFunc(e.retry.pause(), func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		do()
	})
}

// troubled reports whether the log is to be told of trouble: it is new, or goes on for long. It is
// called with mu held.
func (e *enrolment) troubled(err error) bool { return !e.over && e.trouble.due(err) }

// fewMembers is how many records a candidate reads at most to find its own ID among them.
const fewMembers = 256

// compare looks once whether another process has the same ID.
func (e *enrolment) compare() {
	leave, err := throttle.EnterBehind(e.ctx, e.store)
	if err != nil {
		return
	}
	defer leave()
	var all []kv.Held
	err = e.attempt(e.ctx, func(ctx context.Context) (err error) {
		all, _, err = e.store.(kv.Roster).Members(ctx, e.name, fewMembers+1)
		return err
	})
	if err != nil || len(all) > fewMembers {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	own := tagOf(e.draft.Record.Signature)
	for _, held := range all {
		if m := memberOf(held); !m.Foreign && m.ID == e.opts.ID && tagOf(held.Record.Signature) != own {
			e.log.Warn("another process has this ID: give each candidate one of its own, or nobody can tell them apart", "event", "roster_same_id", "number", m.Number)
			return
		}
	}
}

// leave ends the enrolment, and removes the record if the store answers in time. Otherwise the
// record is left to expire.
func (e *enrolment) leave(ctx context.Context) {
	e.mu.Lock()
	e.over = true
	cancel := e.cancel
	if e.timer != nil {
		e.timer.Stop()
	}
	e.mu.Unlock()
	e.end()
	if cancel != nil {
		cancel()
	}
	e.jobs.Wait()
	ctx, done := context.WithTimeout(ctx, e.pace.Attempt/2)
	defer done()
	if err := e.remove(ctx); err != nil {
		e.log.InfoContext(ctx, "a record may be left in the roster until it expires", "event", "roster_may_be_left", "error", err)
	}
}

func (e *enrolment) remove(ctx context.Context) error {
	rec := e.draft.Record
	switch {
	case e.there:
	case !e.doubt:
		return nil
	default:
		var err error
		rec, err = e.find(ctx, e.draft)
		if errors.Is(err, kv.ErrHeld) || errors.Is(err, errTakenKey) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return gone(e.observed().Delete(ctx, e.draft.Name, rec))
}

// An enrolled candidate keeps one record, whoever of its campaigns began first.
type enrolled struct {
	tag string // in the signatures of the candidate's campaigns

	mu      sync.Mutex
	users   int
	present *enrolment
}

// enlist begins to keep the candidate's record in the roster, if it is to have one.
func (c *Candidate) enlist(ctx context.Context) {
	if !c.opts.Roster {
		return
	}
	r := c.enrolled
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.users++; r.users == 1 {
		r.present = c.enrol(ctx, r.tag, false)
	}
}

// delist removes the record, if nobody else needs it.
func (c *Candidate) delist(ctx context.Context) {
	if !c.opts.Roster {
		return
	}
	r := c.enrolled
	r.mu.Lock()
	r.users--
	e := r.present
	if r.users > 0 {
		e = nil
	} else {
		r.present = nil
	}
	r.mu.Unlock()
	if e != nil {
		e.leave(ctx)
	}
}

// rosterName names the roster's safes to logs and hooks.
const rosterName = "roster"

// Attend keeps a record in the election's roster until ctx ends: that of a process which
// observes, and does not compete. It is listed with [RoleObserver], and with the Options.ID,
// Value and Rank of the candidate. Options.Roster need not be set.
//
// It returns when the record is removed, or left to expire: ctx's cause, in an error that
// matches [ErrStopped]; an error that names stores with rosters, if this one has none; or one
// that matches kv.ErrInvalid, if the store can never take the record. It logs all other trouble
// with the store, and goes on.
func (c *Candidate) Attend(ctx context.Context) error {
	if err := checkRoster(c.store); err != nil {
		return err
	}
	defer c.part()
	e := c.enrol(ctx, nonce(), true)
	defer e.leave(context.WithoutCancel(ctx))
	select {
	case err := <-e.failed:
		return fmt.Errorf("election: attend %q: %w", c.name, err)
	case <-ctx.Done():
		return stopped{context.Cause(ctx)}
	}
}

// checkRoster refuses a store that keeps no rosters.
func checkRoster(store kv.Store) error {
	if _, ok := store.(kv.Roster); ok {
		return nil
	}
	return fmt.Errorf("election: %T keeps no roster (kv.Roster): the stores of etcd, Consul, Redis and memory do, "+
		"where the store itself judges expiry; a wrapper of one has to pass Members and AwaitMembers on", store)
}
