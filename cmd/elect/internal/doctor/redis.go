package doctor

import (
	"context"

	rediskv "github.com/electkv/election/backends/redis"
	"github.com/electkv/election/cmd/elect/internal/storeurl"
)

func redis(ctx context.Context, store *storeurl.Store) []Finding {
	clock := Finding{
		Warn, "clock", "expiry runs on the server's wall clock",
		"if it jumps forward, a second leader is elected while the first still trusts its lease",
		"let the server's clock be slewed, never stepped, or have candidates judge (expiry=observer), and have resources check tokens",
	}
	if store.Observed {
		clock = Finding{Level: OK, Subject: "clock", Found: "candidates judge expiry by their own clocks; the server's is not asked"}
	}
	findings := []Finding{clock}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	facts, err := store.KV.(diagnoser).Diagnose(ctx)
	if err != nil {
		findings = append(findings, Finding{Level: Warn, Subject: "settings", Found: "unknown: " + err.Error(), Advice: "let this user call INFO and CONFIG GET to learn more"})
	}
	for _, fact := range facts {
		findings = append(findings, redisFact(fact))
	}
	return findings
}

// A diagnoser is a store of package rediskv, whoever judges expiry in it.
type diagnoser interface {
	Diagnose(ctx context.Context) ([]rediskv.Finding, error)
}

func redisFact(fact rediskv.Finding) Finding {
	f := Finding{Level: OK, Subject: fact.Setting, Found: fact.Value, Why: fact.Advice}
	if f.Found == "" {
		f.Found = "(not set)"
	}
	if fact.Node != "" {
		f.Found += " at " + fact.Node
	}
	if fact.Advice != "" {
		f.Level = Warn
	}
	return f
}
