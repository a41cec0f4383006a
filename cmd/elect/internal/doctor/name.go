package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/electkv/election/cmd/elect/internal/oldlock"
	"github.com/electkv/election/cmd/elect/internal/reserved"
	"github.com/electkv/election/cmd/elect/internal/storeurl"
	"github.com/electkv/election/kv"
)

// ExamineName looks at what is at the keys of a name: records, and locks that were
// there before. A lock that the candidates of the store's URL do not respect is a
// Fail, as is one that stays for ever.
func ExamineName(ctx context.Context, store *storeurl.Store, name string) []Finding {
	ctx, cancel := context.WithTimeoutCause(ctx, callTime, fmt.Errorf("no answer within %v", callTime))
	defer cancel()
	subject := "name " + name
	rec, err := store.KV.Get(ctx, name)
	vacant := errors.Is(err, kv.ErrVacant)
	if err != nil && !vacant {
		f := Finding{Level: Fail, Subject: subject, Found: err.Error(), Why: "a candidate reads it too"}
		if errors.Is(err, kv.ErrInvalid) {
			f.Why = "nobody can be elected under this name"
		}
		return []Finding{f}
	}
	findings := []Finding{}
	of, purpose, beside := reserved.Election(name)
	if beside {
		findings = append(findings, Finding{
			Fail, subject, fmt.Sprintf("is kept for %s of the election %q", purpose, of),
			"no election can have this name", fmt.Sprintf("ask about %q, or use another name", of),
		})
		if vacant || !rec.Foreign {
			return findings // it is as it should be
		}
	}
	locks, err := oldlock.Look(ctx, store, name)
	for _, l := range locks {
		findings = append(findings, Finding{Level: levelOf(l), Subject: subject, Found: l.String(), Why: l.Why, Advice: l.Advice})
	}
	if err != nil {
		return append(findings, Finding{Level: Warn, Subject: subject, Found: "unknown: " + err.Error(), Advice: "let this user read what is at the name and beside it to learn more"})
	}
	if len(locks) == 0 || !locks[0].Here {
		findings = append([]Finding{unrecognised(store, subject, rec, vacant)}, findings...)
	}
	return findings
}

// unrecognised is the finding where no lock was seen at a name's own place. The
// store was asked just before.
func unrecognised(store *storeurl.Store, subject string, rec kv.Record, vacant bool) Finding {
	switch {
	case vacant:
		return Finding{Level: OK, Subject: subject, Found: "nobody leads, and no lock is at its place"}
	case store.Etcd != nil || store.Consul != nil || store.Redis != nil:
		return Finding{Level: Warn, Subject: subject, Found: "what is at its place has just changed", Advice: "look again"}
	case !rec.Foreign:
		return Finding{Level: OK, Subject: subject, Found: "somebody leads"}
	case store.SQL != nil:
		return Finding{
			Fail, subject, "the row has a record that candidates of this URL leave alone",
			"as long as it is there nobody can be elected", "give all candidates of an election the same expiry=…; else see what wrote the row",
		}
	}
	return Finding{
		Fail, subject, "something that no election wrote is at its place",
		"as long as it is there nobody can be elected", "see what it is; if no program needs it, remove it",
	}
}

// levelOf says how much a lock matters to candidates of the URL.
func levelOf(l oldlock.Lock) Level {
	switch {
	case l.Stuck, l.Held && !l.Excludes:
		return Fail
	case !l.Excludes, l.Limited:
		return Warn
	}
	return OK
}
