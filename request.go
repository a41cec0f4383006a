package election

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/kv"
)

// RequestResign asks the leader of the election to resign, and returns nil when it
// no longer leads. It waits for as long as the leader's work needs to stop. If ctx ends
// before the leader has agreed, the request is withdrawn.
//
// The error matches [ErrNoLeader] if nobody leads, and [ErrHeld] if another program's
// lock has the safe. A leader that takes no requests (Options.Requests) gives no
// answer; then the error says so after 15 seconds.
func RequestResign(ctx context.Context, store kv.Store, name string) error {
	return ask(ctx, store, name, "")
}

// RequestTransfer asks the leader of the election to hand over to the candidate with
// this ID, and returns nil when that candidate leads. It is like [RequestResign]. If the
// candidate does not compete, the error matches [ErrNoHeir], and if there is no
// succession, [ErrNoSuccession]; the leader goes on. There is no heir while the candidate
// is called, which takes up to a TTL if it does not answer. If the candidate vanishes after the
// leader has agreed, another may lead, which is an error too, or nobody: then the error matches
// [ErrNoLeader].
func RequestTransfer(ctx context.Context, store kv.Store, name, id string) error {
	if err := checkText("ID", id); err != nil {
		return err
	}
	return ask(ctx, store, name, id)
}

// A request is the text of a request to a leader, with the leader's answer: the value of
// a record in a safe of its own. The asker's record lives as long as the asker
// waits for an answer. The leader answers by publishing another value in it.
type request struct {
	Token uint64 `json:"token"`        // of the term that the request is for
	To    string `json:"to,omitempty"` // to whom to hand over; none: to resign

	Answer string `json:"answer,omitempty"` // heard, and then accepted, or refused,
	NoHeir bool   `json:"no_heir,omitempty"`
	Alone  bool   `json:"no_succession,omitempty"`
	Why    string `json:"why,omitempty"` // and why
}

const (
	heard    = "heard"
	accepted = "accepted"
	refused  = "refused"
)

// unheard is how long a leader has to say that it has heard a request.
const unheard = 15 * time.Second

func (r request) text() string {
	b, err := json.Marshal(r)
	if err != nil {
		panic("election: a request always has a text: " + err.Error())
	}
	return string(b)
}

// requestOf parses a request. If it cannot be parsed, the result is for no term.
func requestOf(rec kv.Record) request {
	var r request
	if rec.Foreign || json.Unmarshal([]byte(rec.Value), &r) != nil {
		return request{}
	}
	return r
}

// heed carries out requests to the leader, until ctx or the term ends, or for as long as
// its work keeps the safe.
func (t *Term) heed(ctx context.Context) {
	latest, stop := t.c.beside(requestSafe(t.c.name), "request").sightings(ctx)
	defer stop()
	var (
		trouble   complaint
		signature string      // of the request that is being dealt with
		drop      = func() {} // stops that, and waits
	)
	defer func() { drop() }()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.over():
			return
		case s := <-latest:
			switch {
			case s.err != nil && !errors.Is(s.err, kv.ErrVacant):
				if trouble.due(s.err) {
					t.c.log.Warn("cannot watch for requests", "event", "requests_not_seen", "error", s.err)
				}
				continue
			case s.rec.Signature == signature:
				continue
			}
			drop() // the request that was withdrawn
			signature, drop = s.rec.Signature, func() {}
			if r := requestOf(s.rec); r.Token == t.token {
				drop = t.dealWith(ctx, s.rec, r)
			}
		}
	}
}

// dealWith complies with a request in the background, until the returned function is
// called, which waits.
func (t *Term) dealWith(ctx context.Context, rec kv.Record, r request) (drop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.comply(ctx, rec, r)
	}()
	return func() {
		cancel()
		<-done
	}
}

// comply answers a request and does what it asks, unless it is refused, or taken back
// before it was accepted. The answer comes first, because the leader may not be able to give
// it when the term has ended.
func (t *Term) comply(ctx context.Context, rec kv.Record, r request) {
	cause := fmt.Errorf("%w: asked to", ErrResigned)
	r.Answer = heard
	rec, ok := t.answer(ctx, rec, r)
	if !ok {
		return
	}
	r.Answer = accepted
	var heir kv.Record
	if r.To != "" {
		var err error
		cause = fmt.Errorf("%w, as asked to", handsOverTo(r.To))
		heir, err = t.nominate(ctx, r.To)
		switch {
		case err != nil && ctx.Err() != nil: // taken back
			return
		case err != nil && t.Err() != nil:
			r.Answer, r.Why = refused, "it is stepping down already"
		case err != nil:
			r.Answer, r.Why = refused, err.Error()
			r.NoHeir, r.Alone = errors.Is(err, ErrNoHeir), errors.Is(err, ErrNoSuccession)
		}
	}
	_, ok = t.answer(ctx, rec, r)
	switch {
	case r.Answer == refused:
		t.c.log.Warn("a request was refused", "event", "request_refused", "to", r.To, "error", r.Why)
	case ok:
		t.end(cause, ReasonAsked, heir.Signature != "")
	case heir.Signature != "" && t.Err() == nil: // the request was withdrawn
		t.removeHeir(ctx, heir)
	}
}

// answer publishes an answer. It reports whether the request is still there, with that
// answer, as far as is known.
func (t *Term) answer(ctx context.Context, rec kv.Record, r request) (answered kv.Record, ok bool) {
	next := rec
	next.Value = r.text()
	name := requestSafe(t.c.name)
	err := t.c.retry(ctx, func(ctx context.Context) error {
		return t.c.attempt(ctx, func(ctx context.Context) error {
			got, err := t.c.observed().Swap(ctx, name, rec, next)
			if errors.Is(err, kv.ErrStale) { // taken back, or answered so by an earlier try
				got, err = t.c.observed().Get(ctx, name)
			}
			if err == nil || errors.Is(err, kv.ErrVacant) {
				answered, ok = got, got.Owns(rec) && got.Value == next.Value
				return nil
			}
			return err
		})
	})
	if err != nil && ctx.Err() == nil {
		t.c.log.Warn("cannot tell whether a request was answered", "event", "answer_unclear", "error", err)
	}
	return answered, ok
}

// An asker waits for a leader to carry out its request.
type asker struct {
	leaders, requests *Candidate
	asked             request
	leader            kv.Record
	rec               kv.Record // the request
	accepted          bool
	vacant            bool // the safe is, though the leader was to hand over
}

func ask(ctx context.Context, store kv.Store, name, to string) error {
	if err := checkName(name); err != nil {
		return err
	}
	leader, err := store.Get(ctx, name)
	switch {
	case errors.Is(err, kv.ErrVacant):
		return ErrNoLeader
	case err != nil:
		return fmt.Errorf("election: current leader of %q: %w", name, err)
	case leader.Foreign:
		return fmt.Errorf("%w: %q is held by a lock that this library did not write, and that takes no requests", ErrHeld, name)
	case machine.IDOf(leader.Signature) == to:
		return nil
	}
	c, err := New(store, name, &Options{ID: "request", TTL: leader.TTL})
	if err != nil {
		return err
	}
	a := &asker{
		leaders:  c,
		requests: c.beside(requestSafe(name), "request"),
		asked:    request{Token: leader.Token, To: to},
		leader:   leader,
	}
	if err := a.send(ctx); err != nil {
		return fmt.Errorf("election: request to %q, which leads %q: %w", machine.IDOf(leader.Signature), name, err)
	}
	err = a.wait(ctx)
	a.takeBack(ctx)
	if err != nil {
		return fmt.Errorf("election: request to %q, which leads %q: %w", machine.IDOf(leader.Signature), name, err)
	}
	return nil
}

// send puts the request where the leader watches. It lives for as long as the leader may
// need to see it and to call an heir, if the store has such a TTL. After an answer that
// is not clear, send reads the safe to find out.
func (a *asker) send(ctx context.Context) error {
	store, name := a.requests.store, a.requests.name
	ttl := unheard + a.leader.TTL
	if _, err := store.Lifetime(ttl); err != nil {
		ttl = a.leader.TTL
	}
	draft := kv.Record{Signature: newSignature("request"), Value: a.asked.text(), TTL: ttl}
	rec, err := store.Create(ctx, name, draft)
	if errors.Is(err, kv.ErrHeld) {
		there, err := store.Get(ctx, name)
		if err == nil && there.Foreign {
			return fmt.Errorf("a lock that this library did not write is at %q, where requests belong", name)
		}
		return fmt.Errorf("another request is under way: it will be dealt with within %v", max(there.TTL, unheard))
	}
	if err != nil && !errors.Is(err, kv.ErrInvalid) {
		there, lookErr := store.Get(ctx, name)
		if lookErr == nil && there.Signature == draft.Signature {
			a.rec = there
			return nil
		}
		return fmt.Errorf("cannot tell whether the request was made, and may be carried out: %w", err)
	}
	a.rec = rec
	return err
}

// takeBack removes the request. If the store does not answer, it stays until it expires.
func (a *asker) takeBack(ctx context.Context) {
	_ = a.requests.insist(ctx, func(ctx context.Context) error {
		return gone(a.requests.store.Delete(ctx, a.requests.name, a.rec))
	})
}

// wait returns when the leader has carried out the request, or will not.
func (a *asker) wait(ctx context.Context) error {
	leaders, stop := a.leaders.sightings(ctx)
	defer stop()
	answers, end := a.requests.sightings(ctx)
	defer end()
	silence := time.NewTimer(unheard)
	defer silence.Stop()
	for {
		select {
		case <-ctx.Done():
			if a.accepted {
				return fmt.Errorf("it has agreed, and its work has not stopped yet: %w", causeOf(ctx))
			}
			return fmt.Errorf("no answer yet: %w", causeOf(ctx))
		case s := <-leaders:
			if done, err := a.see(s, silence); done {
				return err
			}
		case s := <-answers:
			if s.err == nil && s.rec.Signature == a.rec.Signature {
				if err := a.hear(requestOf(s.rec), silence); err != nil {
					return err
				}
			}
		case <-silence.C:
			if a.accepted {
				return fmt.Errorf("%w: it has agreed and stepped down, and nobody has followed", ErrNoLeader)
			}
			return fmt.Errorf("no answer within %v: it does not accept requests (Options.Requests), or is not running", unheard)
		}
	}
}

// see checks whether the request has been carried out, or cannot be any more.
func (a *asker) see(s sighting, silence *time.Timer) (done bool, _ error) {
	switch {
	case errors.Is(s.err, kv.ErrVacant):
		a.vacant = true
		a.awaitNext(silence)
		return a.asked.To == "", nil
	case s.err != nil:
		return errors.Is(s.err, kv.ErrInvalid), s.err
	case s.rec.Token == a.asked.Token && !s.rec.Foreign:
		return false, nil
	case a.asked.To == "", machine.IDOf(s.rec.Signature) == a.asked.To && !s.rec.Foreign:
		return true, nil
	case s.rec.Foreign:
		return true, errors.New("it no longer leads, and a lock that this library did not write has the safe")
	}
	return true, fmt.Errorf("it no longer leads; %q leads now", machine.IDOf(s.rec.Signature))
}

// awaitNext bounds the wait for a leader after one that has agreed to hand over and has left the
// safe vacant: its heir has vanished. If there is another candidate, it leads when the heir's
// record has expired.
func (a *asker) awaitNext(silence *time.Timer) {
	if !a.accepted || !a.vacant {
		return
	}
	most := a.leader.TTL
	if life, err := a.leaders.store.Lifetime(most); err == nil {
		most = life.Max
	}
	silence.Reset(2 * most)
}

// hear takes in an answer.
func (a *asker) hear(r request, silence *time.Timer) error {
	switch {
	case r.Answer == heard:
		silence.Reset(unheard + a.leader.TTL) // for which it may call an heir
	case r.Answer == accepted:
		a.accepted = true
		silence.Stop()
		a.awaitNext(silence)
	case r.Answer == refused && r.NoHeir:
		return refusal{r.Why}
	case r.Answer == refused && r.Alone:
		return ErrNoSuccession
	case r.Answer == refused:
		return errors.New(r.Why)
	}
	return nil
}

// A refusal is a leader's answer if there is no heir.
type refusal struct{ why string }

func (r refusal) Error() string { return r.why }

// Is makes it match ErrNoHeir.
func (r refusal) Is(target error) bool { return target == ErrNoHeir }
