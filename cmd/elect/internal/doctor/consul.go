package doctor

import (
	"context"
	"fmt"

	"github.com/hashicorp/consul/api"

	consulkv "github.com/electkv/election/backends/consul"
	"github.com/electkv/election/cmd/elect/internal/storeurl"
)

func consul(ctx context.Context, store *storeurl.Store) []Finding {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	findings := []Finding{
		{Level: OK, Subject: "clock", Found: "sessions run on the servers' monotonic clocks"},
		{Level: OK, Subject: "expiry", Found: "Consul judges; with ?expiry=observer candidates do, by their own clocks: TTLs from 500ms on, for one write per refresh"},
	}
	if store.Observed {
		findings = []Finding{candidatesJudge()}
	}
	findings = append(findings, consulServers(ctx, store.Consul))
	return append(findings, consulAgent(ctx, store)...)
}

func consulServers(ctx context.Context, client *api.Client) Finding {
	peers, err := client.Status().PeersWithQueryOptions((&api.QueryOptions{}).WithContext(ctx))
	if err != nil {
		return Finding{Level: Warn, Subject: "servers", Found: "unknown: " + err.Error()}
	}
	f := Finding{Level: OK, Subject: "servers", Found: fmt.Sprint(len(peers))}
	if len(peers) < 3 {
		f.Level, f.Why, f.Advice = Warn, "one lost server stops all elections", "run three or five"
	}
	return f
}

// consulAgent looks at the agent's own settings, which takes the permission
// agent:read.
func consulAgent(ctx context.Context, store *storeurl.Store) []Finding {
	var self struct {
		Config struct{ Version string }
		Debug  struct {
			SessionTTLMin         string
			HTTPMaxConnsPerClient *int
		} `json:"DebugConfig"`
	}
	_, err := store.Consul.Raw().Query("/v1/agent/self", &self, (&api.QueryOptions{}).WithContext(ctx))
	if err != nil {
		return []Finding{{Level: Warn, Subject: "agent", Found: "unknown: " + err.Error(), Advice: "give the token agent:read to learn more"}}
	}
	findings := []Finding{{Level: OK, Subject: "agent", Found: "Consul " + self.Config.Version}}
	if !store.Observed && self.Debug.SessionTTLMin != "" && self.Debug.SessionTTLMin != "0s" {
		findings = append(findings, Finding{Level: OK, Subject: "session_ttl_min", Found: self.Debug.SessionTTLMin + ": no shorter TTL is granted; for one below 10 s say ?min-ttl= in the URL"})
	}
	if most := self.Debug.HTTPMaxConnsPerClient; most != nil {
		findings = append(findings, connections(*most))
	}
	return findings
}

// connections says what room the agent has for the processes of one address.
func connections(most int) Finding {
	f := Finding{Level: OK, Subject: "connections", Found: "any number from one address"}
	if most <= 0 {
		return f
	}
	f.Found = fmt.Sprintf("at most %d from one address, for all processes there; a candidate's takes up to %d", most, consulkv.MaxConnections)
	if most < consulkv.MaxConnections {
		f.Level = Warn
		f.Why = "a candidate that is refused a connection polls instead of waiting for news"
		f.Advice = "raise limits.http_max_conns_per_client of the agent"
	}
	return f
}
