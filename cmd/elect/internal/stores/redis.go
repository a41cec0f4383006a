package stores

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	rediskv "github.com/electkv/election/backends/redis"
	"github.com/electkv/election/cmd/elect/internal/oldlock"
	"github.com/electkv/election/kv"
)

func redisKind() kind {
	return kind{
		name: "redis", secured: "rediss", parse: parseRedis,
		form:   "redis://host:port/database (several hosts with ?master=name or ?cluster=true)",
		params: append(tlsParams(), "master", "cluster", "sentinel-user", "prefix", "quarantine", "plain", expiryParam),
		help: [][2]string{
			{"redis://host:port/database", "rediss:// with TLS"},
			{"redis://host:port,host:port/0?master=NAME", "by sentinels"},
			{"redis://host:port,host:port?cluster=true", "a cluster"},
		},
		secrets: []string{"REDISCLI_AUTH", "REDISCLI_SENTINEL_AUTH"}, instead: "REDISCLI_AUTH",
		besides: `redis has prefix, sentinel-user and quarantine: how long a server that was
restarted or promoted keeps elections closed. All candidates of an election need
the same quarantine.`,
		called: "Redis", answers: isRedis, refuses: redisRefuses,
		releasable: true,
	}
}

func parseRedis(l *location) (opener, error) {
	if len(l.hosts) == 0 {
		return nil, errors.New("no host")
	}
	db, err := l.database()
	if err != nil {
		return nil, err
	}
	cluster, err := l.flag("cluster")
	if err != nil {
		return nil, err
	}
	master := l.query.Get("master")
	switch {
	case cluster && master != "":
		return nil, errors.New("cluster and master exclude each other")
	case cluster && db != 0:
		return nil, errors.New("a cluster has only database 0")
	case !cluster && master == "" && len(l.hosts) > 1:
		return nil, errors.New("several hosts, but neither cluster=true nor master=name")
	}
	secure, err := l.tlsConfig(tlsSource{})
	if err != nil {
		return nil, err
	}
	port := "6379"
	if master != "" {
		port = "26379"
	}
	options := &redis.UniversalOptions{
		Addrs:            l.addresses(port),
		DB:               db,
		Username:         l.user,
		Password:         l.password,
		MasterName:       master,
		SentinelUsername: l.query.Get("sentinel-user"),
		SentinelPassword: l.env("REDISCLI_SENTINEL_AUTH"),
		TLSConfig:        secure,
		IsClusterMode:    cluster,
		// Otherwise a call does not end when its context does.
		ContextTimeoutEnabled: true,
		// It would take a new connection another round trip.
		DisableIdentity: true,
	}
	if options.Password == "" {
		options.Password = l.env("REDISCLI_AUTH")
	}
	quarantine, err := l.duration("quarantine")
	if err != nil {
		return nil, err
	}
	view, err := l.view(l.query.Get("prefix"))
	if err != nil {
		return nil, err
	}
	if view.Observed && view.Plain {
		return nil, errors.New("expiry=observer and plain exclude each other: a plain value ends with its key's expiry, which the server judges")
	}
	return func(context.Context, purpose) (*Store, error) {
		r := &redisStore{server{view: view, where: l, addresses: options.Addrs}, redis.NewUniversalClient(options), quarantine}
		r.view.Store = r.with
		return &Store{KV: r.store(), Backend: r}, nil
	}, nil
}

// database returns the number in the path, by default 0.
func (l *location) database() (int, error) {
	path := strings.Trim(l.path, "/")
	if path == "" {
		return 0, nil
	}
	db, err := strconv.ParseUint(path, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("the path is not the number of a database; prefix is a parameter")
	}
	return int(db), nil
}

// A redisStore is a Redis: one server, one with its replicas, or a cluster.
type redisStore struct {
	server
	client     redis.UniversalClient
	quarantine time.Duration
}

func (r *redisStore) with(plain, observed bool, _ oldlock.Layout) kv.Store {
	if observed {
		return rediskv.NewObserved(r.client, &rediskv.ObservedOptions{Prefix: r.view.Prefix, Quarantine: r.quarantine})
	}
	return rediskv.New(r.client, &rediskv.Options{Prefix: r.view.Prefix, Quarantine: r.quarantine, Plain: plain})
}

// Close implements [Backend].
func (r *redisStore) Close() error { return r.client.Close() }

// forget removes the keys beside that of the name: see the package documentation of
// rediskv.
func (r *redisStore) forget(ctx context.Context, name string) (err error) {
	key := r.view.Key(name)
	for _, stem := range []string{"{" + key + "}", key + ":"} {
		for _, ending := range []string{":election-fence", ":election-server", ":election-record"} {
			err = errors.Join(err, r.client.Del(ctx, stem+ending).Err())
		}
	}
	return err
}

func (r *redisStore) oldLocks(ctx context.Context, name string) ([]oldlock.Lock, error) {
	return oldlock.Redis(ctx, r.client, &r.view, name)
}

// counterEnding ends the key of a safe's counter, which stays when the safe is vacant.
const counterEnding = ":election-fence"

// rosterEnding makes the key of a roster: its counter's is that and counterEnding.
const rosterEnding = ":election-roster"

// names looks for the counters of safes among all keys of the database.
func (r *redisStore) names(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for counter, err := range r.scan(ctx, "*"+globbed(r.view.Prefix+prefix)+"*"+counterEnding) {
			if err != nil {
				yield("", err)
				return
			}
			name, ok := strings.CutPrefix(counted(counter), r.view.Prefix)
			if ok && strings.HasPrefix(name, prefix) && !yield(name, nil) {
				return
			}
		}
	}
}

// counted returns the key that a counter belongs to: the one between braces, or in a cluster
// the one whose own hash tag the counter has, too. That of a roster belongs to the election's.
func counted(counter string) string {
	key := strings.TrimSuffix(strings.TrimSuffix(counter, counterEnding), rosterEnding)
	if inner, ok := strings.CutPrefix(key, "{"); ok {
		if inner, ok = strings.CutSuffix(inner, "}"); ok && !strings.Contains(inner, "}") {
			return inner
		}
	}
	return strings.TrimSuffix(key, ":")
}

// globbed returns a pattern of Redis for the text itself.
func globbed(text string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "^", `\^`).Replace(text)
}

// scan yields the keys that match, of all primaries where there are several. Some may come
// twice.
func (r *redisStore) scan(ctx context.Context, pattern string) iter.Seq2[string, error] {
	cluster, ok := r.client.(*redis.ClusterClient)
	if !ok {
		return each(ctx, r.client, pattern)
	}
	return func(yield func(string, error) bool) {
		var mu sync.Mutex // all primaries are asked at once
		all := []string{}
		err := cluster.ForEachMaster(ctx, func(ctx context.Context, primary *redis.Client) error {
			for key, err := range each(ctx, primary, pattern) {
				if err != nil {
					return err
				}
				mu.Lock()
				all = append(all, key)
				mu.Unlock()
			}
			return nil
		})
		if err != nil {
			yield("", err)
			return
		}
		for _, key := range all {
			if !yield(key, nil) {
				return
			}
		}
	}
}

// each yields the keys of one server that match.
func each(ctx context.Context, client redis.Cmdable, pattern string) iter.Seq2[string, error] {
	const count = 1000 // that the server looks at for one answer
	return func(yield func(string, error) bool) {
		keys := client.Scan(ctx, 0, pattern, count).Iterator()
		for keys.Next(ctx) {
			if !yield(keys.Val(), nil) {
				return
			}
		}
		if err := keys.Err(); err != nil {
			yield("", err)
		}
	}
}

// Examine asks all servers for what their settings and their state mean.
func (r *redisStore) Examine(ctx context.Context, _ time.Duration) []Finding {
	findings := []Finding{wallClock(r.Observed(), "resources check tokens")}
	ctx, cancel := context.WithTimeout(ctx, CallTime)
	defer cancel()
	facts, err := r.store().(diagnoser).Diagnose(ctx)
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

// isRedis knows a reply of Redis, which takes the line for a command with an argument
// too many.
func isRedis(_ context.Context, _ string, reply []byte) bool {
	return len(reply) >= 5 && (reply[0] == '-' || reply[0] == '+')
}

func redisRefuses(err error) bool {
	return slices.ContainsFunc([]string{"NOAUTH", "WRONGPASS", "NOPERM"}, func(code string) bool { return redis.HasErrorPrefix(err, code) })
}
