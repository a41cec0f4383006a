// Package doctor finds out what a store can promise, and what it cannot, and
// why.
package doctor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/electkv/election/cmd/elect/internal/stores"
	"github.com/electkv/election/kv"
)

// Examine looks at the store. A finding of level Fail may be the last one: what
// cannot be reached cannot be examined.
func Examine(ctx context.Context, store *stores.Store, ttl time.Duration) []stores.Finding {
	findings := []stores.Finding{}
	life, err := store.KV.Lifetime(ttl)
	if err != nil {
		return append(findings, stores.Finding{
			Level: stores.Fail, Subject: "TTL", Found: err.Error(),
			Why: "the store cannot honour it", Advice: "use another --ttl" + store.OtherTTLs(),
		})
	}
	findings = append(findings, lifetime(store, ttl, life))
	trip := roundTrip(ctx, store, ttl)
	findings = append(findings, trip)
	if trip.Level == stores.Fail {
		return append(findings, store.ExamineFailed(ctx)...)
	}
	return append(append(findings, roster(ctx, store.KV)), store.Examine(ctx, ttl)...)
}

// roster says whether candidates can be listed.
func roster(ctx context.Context, store kv.Store) stores.Finding {
	f := stores.Finding{Level: stores.OK, Subject: "roster", Found: "candidates can be listed (elect run --roster)"}
	lists, ok := store.(kv.Roster)
	if !ok {
		f.Found = "this store keeps none: the leader and the heir are known, and no other candidates"
		return f
	}
	ctx, cancel := context.WithTimeoutCause(ctx, stores.CallTime, fmt.Errorf("no answer within %v", stores.CallTime))
	defer cancel()
	if _, _, err := lists.Members(ctx, scratch(), 1); err != nil {
		f.Level, f.Found = stores.Warn, err.Error()
		f.Why = "elect status and others read the candidates of an election that way"
		f.Advice = "see that this user may list what it may read"
	}
	return f
}

// lifetime says how long a dead leader keeps others out.
func lifetime(store *stores.Store, ttl time.Duration, life kv.Lifetime) stores.Finding {
	f := stores.Finding{Level: stores.OK, Subject: "failover", Found: fmt.Sprintf("a leader that vanished keeps others out for at most %v, with a TTL of %v", life.Max.Round(time.Millisecond), ttl)}
	if store.Observed() {
		f.Found += fmt.Sprintf("; candidates that watched it until then, for %v", ttl)
		return f
	}
	if life.Max > ttl+ttl/2 {
		f.Level = stores.Warn
		f.Why, f.Advice = store.Delay()
	}
	return f
}

// scratch is a name that nobody else uses.
func scratch() string {
	return "elect-doctor-" + strings.ToLower(rand.Text()[:8])
}

// roundTrip plays a whole life of a record, and measures it.
func roundTrip(ctx context.Context, store *stores.Store, ttl time.Duration) stores.Finding {
	name := scratch()
	slowest, err := live(ctx, store.KV, name, ttl)
	f := stores.Finding{Level: stores.OK, Subject: "round trip", Found: fmt.Sprintf("create, 5 refreshes, delete: the slowest took %v", slowest.Round(10*time.Microsecond))}
	err = errors.Join(err, store.Forget(name))
	switch {
	case err != nil:
		f = stores.Finding{
			Level: stores.Fail, Subject: "round trip", Found: err.Error(),
			Why: "a candidate does the same", Advice: "see that the store answers, and that this user may write",
		}
		if hint := store.Hint(ctx, slowest >= stores.CallTime); hint != "" {
			f.Advice += "; " + hint
		}
		return f
	case slowest > ttl/10:
		f.Level = stores.Warn
		f.Why = "a leader that cannot refresh in time loses its term"
		f.Advice = fmt.Sprintf("use a TTL of at least %v", (20 * slowest).Round(100*time.Millisecond))
	}
	return f
}

// live creates, refreshes and deletes a record.
func live(ctx context.Context, store kv.Store, name string, ttl time.Duration) (slowest time.Duration, err error) {
	timed := func(call func(ctx context.Context) error) error {
		ctx, cancel := context.WithTimeoutCause(ctx, stores.CallTime, fmt.Errorf("no answer within %v", stores.CallTime))
		defer cancel()
		begin := time.Now()
		err := call(ctx)
		slowest = max(slowest, time.Since(begin))
		return err
	}
	rec := kv.Record{Signature: "elect doctor/" + rand.Text(), TTL: ttl}
	if err := timed(func(ctx context.Context) (err error) {
		rec, err = store.Create(ctx, name, rec)
		return err
	}); err != nil {
		return slowest, err
	}
	for range 5 {
		if err := timed(func(ctx context.Context) (err error) {
			rec, err = store.Refresh(ctx, name, rec)
			return err
		}); err != nil {
			return slowest, err
		}
	}
	return slowest, timed(func(ctx context.Context) error { return store.Delete(ctx, name, rec) })
}
