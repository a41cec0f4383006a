package rediskv

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// A Finding is a setting of a server, or of the client, that matters for what
// the store can promise.
type Finding struct {
	Node    string // the server's address; empty for what concerns the client
	Setting string // for example "maxmemory-policy"
	Value   string // as the server has it: may be empty
	Advice  string // what it breaks, and what would be right; empty if it is fine
}

// Diagnose looks at the settings of the server, or of every primary of a
// cluster. It changes nothing. Settings that the server does not let this user
// read are reported as unknown.
func (s *Store) Diagnose(ctx context.Context) ([]Finding, error) {
	if s.unfit != nil {
		return nil, s.unfit
	}
	findings, err := await(ctx, func() ([]Finding, error) {
		switch client := s.client.(type) {
		case *redis.ClusterClient:
			return diagnoseCluster(ctx, client)
		case *redis.Client:
			found, err := diagnoseServer(ctx, client, client.Options().Addr)
			return append(found, diagnoseClient(client.Options().ContextTimeoutEnabled)), err
		default:
			return diagnoseServer(ctx, client, "")
		}
	})
	if err != nil {
		return nil, fmt.Errorf("rediskv: diagnose: %w", err)
	}
	for i, f := range findings {
		if s.observed && f.Setting == "maxmemory_policy" && strings.HasPrefix(f.Value, "volatile-") {
			findings[i].Advice = "" // that drops keys that have an expiry
		}
	}
	return findings, nil
}

func diagnoseCluster(ctx context.Context, client *redis.ClusterClient) ([]Finding, error) {
	var mu sync.Mutex
	findings := []Finding{diagnoseClient(client.Options().ContextTimeoutEnabled)}
	err := client.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		found, err := diagnoseServer(ctx, node, node.Options().Addr)
		mu.Lock()
		defer mu.Unlock()
		findings = append(findings, found...)
		return err
	})
	return findings, err
}

func diagnoseClient(heedsDeadlines bool) Finding {
	f := Finding{Setting: "ContextTimeoutEnabled", Value: strconv.FormatBool(heedsDeadlines)}
	if !heedsDeadlines {
		f.Advice = "abandoned requests keep a connection until ReadTimeout; set it in the client's options"
	}
	return f
}

// A question is a setting and what is wrong with a value of it, if anything.
type question struct {
	setting string
	judge   func(value string) (advice string)
}

// aboutInfo are questions about lines of INFO.
var aboutInfo = []question{
	{"redis_version", func(v string) string {
		var major, minor int
		if _, err := fmt.Sscanf(v, "%d.%d", &major, &minor); err != nil || major < 6 || major == 6 && minor < 2 {
			return "GETEX may be missing; want 6.2 or later"
		}
		return ""
	}},
	{"role", func(v string) string {
		if v != "master" {
			return "a replica takes no records; want the primary"
		}
		return ""
	}},
	{"cluster_enabled", func(v string) string {
		if v != "0" {
			return failoverForgets
		}
		return ""
	}},
	{"connected_slaves", func(v string) string {
		if v != "0" {
			return failoverForgets
		}
		return ""
	}},
	{"maxmemory_policy", func(v string) string {
		if v != "noeviction" {
			return "records may be dropped when memory is short, and a second leader elected; want noeviction"
		}
		return ""
	}},
	{"aof_enabled", func(v string) string {
		if v != "1" {
			return "a restart forgets records, and a second leader may be elected; want appendonly yes, or a quarantine"
		}
		return ""
	}},
}

const failoverForgets = "a failover may forget the newest records, and a second leader be elected; want a quarantine, and resources that check tokens"

// aboutConfig are questions to CONFIG GET.
var aboutConfig = []question{
	{"appendfsync", func(v string) string {
		if v != "always" {
			return "a crash of the machine may forget records of the last second; want always"
		}
		return ""
	}},
	{"notify-keyspace-events", func(v string) string {
		if !strings.Contains(v, "K") {
			return "what other programs do to a key is seen at the next look, not at once; \"Kg$xe\" would tell"
		}
		return ""
	}},
}

// diagnoseServer asks one server.
func diagnoseServer(ctx context.Context, client redis.Cmdable, node string) ([]Finding, error) {
	info, err := client.Info(ctx).Result()
	if err != nil {
		return nil, err
	}
	values := make(map[string]string)
	for line := range strings.Lines(info) {
		if setting, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			values[setting] = value
		}
	}
	var findings []Finding
	for _, q := range aboutInfo {
		if v, ok := values[q.setting]; ok {
			findings = append(findings, Finding{node, q.setting, v, q.judge(v)})
		}
	}
	for _, q := range aboutConfig {
		f := Finding{Node: node, Setting: q.setting, Value: "unknown"}
		config, err := client.ConfigGet(ctx, q.setting).Result()
		if v, ok := config[q.setting]; ok {
			f.Value, f.Advice = v, q.judge(v)
		} else if err != nil {
			f.Advice = "the server does not tell: " + err.Error()
		}
		findings = append(findings, f)
	}
	return findings, nil
}
