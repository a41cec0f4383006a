package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/electkv/election/cmd/elect/internal/oldlock"
	"github.com/electkv/election/cmd/elect/internal/reserved"
	"github.com/electkv/election/cmd/elect/internal/stores"
	"github.com/electkv/election/kv"
)

// ExamineName looks at what is at the keys of a name: records, and locks that were
// there before. A lock that the candidates of the store's URL do not respect is a
// Fail, as is one that stays for ever.
func ExamineName(ctx context.Context, store *stores.Store, name string) []stores.Finding {
	ctx, cancel := context.WithTimeoutCause(ctx, stores.CallTime, fmt.Errorf("no answer within %v", stores.CallTime))
	defer cancel()
	subject := "name " + name
	rec, err := store.KV.Get(ctx, name)
	vacant := errors.Is(err, kv.ErrVacant)
	if err != nil && !vacant {
		f := stores.Finding{Level: stores.Fail, Subject: subject, Found: err.Error(), Why: "a candidate reads it too"}
		if errors.Is(err, kv.ErrInvalid) {
			f.Why = "nobody can be elected under this name"
		}
		return []stores.Finding{f}
	}
	findings := []stores.Finding{}
	of, purpose, beside := reserved.Election(name)
	if beside {
		findings = append(findings, stores.Finding{
			Level: stores.Fail, Subject: subject, Found: fmt.Sprintf("is kept for %s of the election %q", purpose, of),
			Why: "no election can have this name", Advice: fmt.Sprintf("ask about %q, or use another name", of),
		})
		if vacant || !rec.Foreign {
			return findings // it is as it should be
		}
	}
	locks, err := store.OldLocks(ctx, name)
	for _, l := range locks {
		findings = append(findings, stores.Finding{Level: levelOf(l), Subject: subject, Found: l.String(), Why: l.Why, Advice: l.Advice})
	}
	if err != nil {
		return append(findings, stores.Finding{Level: stores.Warn, Subject: subject, Found: "unknown: " + err.Error(), Advice: "let this user read what is at the name and beside it to learn more"})
	}
	if len(locks) == 0 || !locks[0].Here {
		findings = append([]stores.Finding{unrecognised(store, subject, rec, vacant)}, findings...)
	}
	return findings
}

// unrecognised is the finding where no lock was seen at a name's own place. The
// store was asked just before.
func unrecognised(store *stores.Store, subject string, rec kv.Record, vacant bool) stores.Finding {
	if vacant {
		return stores.Finding{Level: stores.OK, Subject: subject, Found: "nobody leads, and no lock is at its place"}
	}
	f := store.Unknown(rec.Foreign)
	f.Subject = subject
	return f
}

// levelOf says how much a lock matters to candidates of the URL.
func levelOf(l oldlock.Lock) stores.Level {
	switch {
	case l.Stuck, l.Held && !l.Excludes:
		return stores.Fail
	case !l.Excludes, l.Limited:
		return stores.Warn
	}
	return stores.OK
}
