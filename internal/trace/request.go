package trace

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/machine"
)

// A request is one that the core has asked for, and that has no answer yet.
type request struct {
	machine.Request
	of    *campaign
	key   machine.Key // of the lock that sends it
	asked machine.Instant

	ops    []string      // of the store that may yet carry it out
	call   uint64        // by which the store was asked last; zero if it was not
	left   time.Duration // when it was asked first, on the boot clock
	answer history.Event // of the store to that
}

func newRequest(of *campaign, f machine.Effect, now machine.Instant) *request {
	return &request{Request: f.Request, of: of, key: f.Key, asked: now, ops: opsOf(f.Request.Op)}
}

// opsOf returns the operations of a store that carry a request out, in their order.
func opsOf(op machine.Op) []string {
	switch op {
	case machine.NoOp, machine.Ask:
	case machine.Create:
		return []string{history.OpCreate}
	case machine.Displace, machine.Publish:
		return []string{history.OpSwap}
	case machine.Refresh:
		return []string{history.OpRefresh}
	case machine.HandOver:
		return []string{history.OpHandOver, history.OpSwap}
	case machine.Delete:
		return []string{history.OpDelete}
	case machine.Vacate: // again, if the store cannot do it in one step
		return []string{history.OpDelete, history.OpDelete}
	case machine.Get:
		return []string{history.OpGet}
	case machine.Join:
		return []string{history.OpJoin}
	case machine.Stay:
		return []string{history.OpStay}
	}
	return nil
}

// permits reports whether the store may be asked for something on behalf of the request.
func (r *request) permits(ev history.Event) bool {
	safe, rec, next := "", r.Old, ""
	if r.Key == machine.Place {
		safe = history.Heir
	}
	switch r.Op {
	case machine.Create, machine.Join:
		rec = r.New
	case machine.Displace, machine.HandOver:
		next = r.New.Signature
	}
	return slices.Contains(r.ops, ev.Op) && ev.Safe == safe &&
		ev.Signature == rec.Signature && ev.Token == rec.Token && ev.Next == next
}

// send takes in that the store is asked for it.
func (r *request) send(ev history.Event) {
	r.ops = r.ops[slices.Index(r.ops, ev.Op)+1:]
	if r.call == 0 {
		r.left = ev.At
	}
	r.call, r.answer = ev.Call, history.Event{}
}

// check reports what is wrong with an answer that the core is given.
func (r *request) check(a machine.Answer, now machine.Instant) error {
	switch {
	case a.Key != r.key:
		return fmt.Errorf("request %d of the %s is answered to the %s", r.ID, r.key, a.Key)
	case a.Sent.Mono < r.asked.Mono || a.Sent.Boot < r.asked.Boot:
		return fmt.Errorf("request %d (%s) left at %v, before it was asked for at %v", r.ID, r.Op, a.Sent, r.asked)
	case a.Sent.Mono > now.Mono || a.Sent.Boot > now.Boot:
		return fmt.Errorf("request %d (%s) left at %v, after its answer at %v", r.ID, r.Op, a.Sent, now)
	}
	result := resultOf(a.Verdict)
	switch {
	case result == "" || r.Op == machine.Ask: // it may not have come to the store
		return nil
	case r.Op == machine.HandOver && a.Verdict != machine.OK: // by what a look at the heir's safe showed
		return nil
	case r.Op == machine.Vacate && a.Verdict == machine.Held && (r.call == 0 || r.answer.Result == history.Unsupported): // likewise
		return nil
	case r.call == 0:
		return fmt.Errorf("request %d (%s) is answered with %q, and the store was never asked", r.ID, r.Op, a.Verdict)
	case r.Op == machine.Get: // others look there too
		return nil
	case a.Sent.Boot > r.left:
		return fmt.Errorf("request %d (%s) is said to have left at %v, and left at %v", r.ID, r.Op, a.Sent.Boot, r.left)
	}
	if err := r.sameAsTheStores(a, result); err != nil {
		return fmt.Errorf("request %d (%s): %w", r.ID, r.Op, err)
	}
	return nil
}

// sameAsTheStores reports how an answer differs from that of the store.
func (r *request) sameAsTheStores(a machine.Answer, result string) error {
	switch said := r.answer; {
	case said.Kind == "":
		return errors.New("it is answered before the store has answered")
	case said.Result != result:
		return fmt.Errorf("the store has answered %q, and the core is told %q", said.Result, result)
	case result == history.OK && (said.Signature != a.Record.Signature || said.Token != a.Record.Token || said.TTL != a.Record.TTL):
		return fmt.Errorf("the store has granted %q token %d for %v, and the core is told %q token %d for %v",
			said.Signature, said.Token, said.TTL, a.Record.Signature, a.Record.Token, a.Record.TTL)
	}
	return nil
}

// resultOf returns what a store's answer is in a history that has this verdict, if it must
// be the store's.
func resultOf(v machine.Verdict) string {
	switch v {
	case machine.OK:
		return history.OK
	case machine.Vacant:
		return history.Vacant
	case machine.Held:
		return history.Held
	case machine.Stale:
		return history.Stale
	case machine.Invalid, machine.Unclear:
	}
	return ""
}
