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

	"github.com/electkv/election/cmd/elect/internal/storeurl"
	"github.com/electkv/election/kv"
)

// A Level says how much a finding matters.
type Level string

// OK promises what the documentation promises; Warn is a limit to know about;
// Fail means that elections do not work here.
const (
	OK   Level = "OK"
	Warn Level = "WARN"
	Fail Level = "FAIL"
)

// A Finding is one thing that was looked at.
type Finding struct {
	Level   Level  `json:"level"`
	Subject string `json:"subject"`
	Found   string `json:"found"`
	Why     string `json:"why,omitempty"`    // it matters
	Advice  string `json:"advice,omitempty"` // what would be right
}

// callTime bounds each question to the store.
const callTime = 5 * time.Second

// Examine looks at the store. A finding of level Fail may be the last one: what
// cannot be reached cannot be examined.
func Examine(ctx context.Context, store *storeurl.Store, ttl time.Duration) []Finding {
	findings := []Finding{}
	life, err := store.KV.Lifetime(ttl)
	if err != nil {
		f := Finding{Fail, "TTL", err.Error(), "the store cannot honour it", "use another --ttl"}
		switch {
		case store.Paxos != nil:
			f.Advice += ", or another max-ttl in the URLs of all members"
		case store.Otherwise() != nil && !store.Observed:
			f.Advice += ", or expiry=observer in the URL, which has them from 500ms on"
		}
		return append(findings, f)
	}
	findings = append(findings, lifetime(store, ttl, life))
	trip := roundTrip(ctx, store, ttl)
	findings = append(findings, trip)
	if trip.Level == Fail {
		if store.Paxos != nil {
			findings = append(findings, paxos(ctx, store.Paxos)...)
		}
		return findings
	}
	switch {
	case store.Etcd != nil:
		return append(findings, etcd(ctx, store)...)
	case store.Consul != nil:
		return append(findings, consul(ctx, store)...)
	case store.Redis != nil:
		return append(findings, redis(ctx, store)...)
	case store.SQL != nil:
		return append(findings, database(ctx, store, ttl)...)
	case store.Paxos != nil:
		return append(findings, paxos(ctx, store.Paxos)...)
	case store.Dir != "":
		return append(findings, file(store.Dir)...)
	}
	return append(findings, Finding{Warn, "scope", "one process", "no other process sees this memory", "use it for tests only"})
}

// lifetime says how long a dead leader keeps others out.
func lifetime(store *storeurl.Store, ttl time.Duration, life kv.Lifetime) Finding {
	f := Finding{Level: OK, Subject: "failover", Found: fmt.Sprintf("a leader that vanished keeps others out for at most %v, with a TTL of %v", life.Max.Round(time.Millisecond), ttl)}
	if store.Observed {
		f.Found += fmt.Sprintf("; those who watched it until then, for %v", ttl)
		return f
	}
	if life.Max > ttl+ttl/2 {
		f.Level = Warn
		f.Why = "the store frees a record much later than its TTL says"
		f.Advice = "reckon with the longer time, or choose another store"
		if store.Paxos != nil {
			f.Why = "where a write reached a few members only, the others wait for some rounds"
			f.Advice = "reckon with the longer time, or give all members a shorter round, if their network allows it"
		}
	}
	return f
}

// scratch is a name that nobody else uses.
func scratch() string {
	return "elect-doctor-" + strings.ToLower(rand.Text()[:8])
}

// roundTrip plays a whole life of a record, and measures it.
func roundTrip(ctx context.Context, store *storeurl.Store, ttl time.Duration) Finding {
	name := scratch()
	slowest, err := live(ctx, store.KV, name, ttl)
	f := Finding{Level: OK, Subject: "round trip", Found: fmt.Sprintf("create, 5 refreshes, delete: the slowest took %v", slowest.Round(10*time.Microsecond))}
	err = errors.Join(err, store.Forget(name))
	switch {
	case err != nil:
		f = Finding{Fail, "round trip", err.Error(), "a candidate does the same", "see that the store answers, and that this user may write"}
		if hint := store.Hint(ctx, slowest >= callTime); hint != "" {
			f.Advice += "; " + hint
		}
		return f
	case slowest > ttl/10:
		f.Level = Warn
		f.Why = "a leader that cannot refresh in time loses its term"
		f.Advice = fmt.Sprintf("use a TTL of at least %v", (20 * slowest).Round(100*time.Millisecond))
	}
	return f
}

// live creates, refreshes and deletes a record.
func live(ctx context.Context, store kv.Store, name string, ttl time.Duration) (slowest time.Duration, err error) {
	timed := func(call func(ctx context.Context) error) error {
		ctx, cancel := context.WithTimeoutCause(ctx, callTime, fmt.Errorf("no answer within %v", callTime))
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
