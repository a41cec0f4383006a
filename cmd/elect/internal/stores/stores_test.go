package stores_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/cmd/elect/internal/oldlock"
	"github.com/electkv/election/cmd/elect/internal/stores"
	"github.com/electkv/election/kv"
)

// nothing is an empty environment.
func nothing(string) string { return "" }

func TestParseAcceptsTheDocumentedForms(t *testing.T) {
	for raw, want := range map[string]string{
		"mem:":                               "mem:",
		"file:///var/lib/elect":              "file:///var/lib/elect",
		"file:///with%20space":               "file:///with%20space",
		"etcd://h:2379":                      "etcd://h:2379",
		"etcd://a:1,b:2,c/jobs":              "etcd://a:1,b:2,c/jobs",
		"etcds://u:p@[::1]:2379/jobs":        "etcds://[::1]:2379/jobs",
		"ETCD://h":                           "etcd://h",
		"consul://token@h:8500/jobs":         "consul://h:8500/jobs",
		"consul://h?dc=eu&min-ttl=1s":        "consul://h",
		"consuls://h:8501":                   "consuls://h:8501",
		"redis://:secret@h/3?prefix=x:":      "redis://h/3",
		"redis://a,b:2/0?master=main":        "redis://a,b:2/0",
		"redis://a,b?cluster=true":           "redis://a,b",
		"rediss://h?insecure-skip-verify=1":  "rediss://h",
		"redis://user:p%40ss%2Fw@10.0.0.1:1": "redis://10.0.0.1:1",

		"sqlite:///var/lib/elect.db?table=x":               "sqlite:///var/lib/elect.db",
		"postgres://u:p@h:5433/app?schema=s&sslmode=allow": "postgres://h:5433/app",
		"postgresql://a,b:2/app":                           "postgresql://a,b:2/app",
		"postgres://[::1]/app?expiry=observer":             "postgres://[::1]/app",
		"mysql://u:p@h/app?tls=true":                       "mysql://h/app",
		"mariadb://u@h:3307/app?expiry=store":              "mariadb://h:3307/app",
	} {
		t.Run(raw, func(t *testing.T) {
			a, err := stores.Parse(raw, nothing)
			require.NoError(t, err)
			require.Equal(t, want, a.String())
		})
	}
}

func TestOpenReturnsAStoreWithItsClient(t *testing.T) {
	is := func(kind string) func(*stores.Store) bool {
		return func(s *stores.Store) bool { return fmt.Sprintf("%T", s.KV) == kind }
	}
	for raw, has := range map[string]func(*stores.Store) bool{
		"mem:":                     func(s *stores.Store) bool { return s.Alone() && is("*memkv.Store")(s) },
		"file://" + t.TempDir():    func(s *stores.Store) bool { return !s.Alone() && is("*filekv.Store")(s) },
		"etcd://127.0.0.1:1/jobs":  is("*etcdkv.Store"),
		"consul://127.0.0.1:1":     is("*consulkv.Store"),
		"redis://127.0.0.1:1":      is("*rediskv.Store"),
		"redis://a,b?cluster=true": is("*rediskv.Store"),

		"etcd://h?expiry=store":      func(s *stores.Store) bool { return !s.Observed() && judge(s) == "*etcdkv.Store" },
		"etcd://h?expiry=observer":   func(s *stores.Store) bool { return s.Observed() && judge(s) == "*etcdkv.Observed" },
		"consul://h?expiry=store":    func(s *stores.Store) bool { return !s.Observed() && judge(s) == "*consulkv.Store" },
		"consul://h?expiry=observer": func(s *stores.Store) bool { return s.Observed() && judge(s) == "*consulkv.Observed" },
		"redis://h?expiry=store":     func(s *stores.Store) bool { return !s.Observed() && judge(s) == "*rediskv.Store" },
		"redis://h?expiry=observer":  func(s *stores.Store) bool { return s.Observed() && judge(s) == "*rediskv.Observed" },
	} {
		t.Run(raw, func(t *testing.T) {
			a, err := stores.Parse(raw, nothing)
			require.NoError(t, err)
			store, err := a.Open()
			require.NoError(t, err)
			require.NotNil(t, store.KV)
			require.True(t, has(store))
			require.NoError(t, store.Close())
		})
	}
}

func TestTheURLSaysWhichKeyANameHas(t *testing.T) {
	for _, c := range []struct{ url, name, key string }{
		{"etcd://h", "a", "a"},
		{"etcd://h", "/locks/a", "/locks/a"},
		{"etcd://h/locks", "a", "locks/a"},
		{"etcd://h/locks/", "a", "locks/a"},
		{"etcd://h//locks", "a", "/locks/a"},
		{"etcd://h//locks/", "a", "/locks/a"},
		{"etcd://h//", "a", "/a"},
		{"etcd://h/%2Flocks", "a", "/locks/a"},
		{"etcd://h/a%20b", "c", "a b/c"},
		{"consul://h/locks", "a/.lock", "locks/a/.lock"},
		{"consul://h", "service/a/leader", "service/a/leader"},
		{"redis://h", "lock:{a}", "lock:{a}"},
		{"redis://h?prefix=rueidislock:0:", "a", "rueidislock:0:a"},
	} {
		t.Run(c.url+" "+c.name, func(t *testing.T) {
			require.Equal(t, c.key, stores.ViewOf(open(t, c.url)).Key(c.name))
		})
	}
}

func TestTheURLSaysHowASafeKeepsItsRecord(t *testing.T) {
	for raw, want := range map[string]struct {
		plain  bool
		layout oldlock.Layout
	}{
		"etcd://h":                        {false, oldlock.OneKey},
		"etcd://h?layout=key":             {false, oldlock.OneKey},
		"etcd://h?layout=queue":           {false, oldlock.Queue},
		"etcd://h/p?layout=claim&plain=1": {true, oldlock.Claim},
		"consul://h?plain=true":           {true, ""},
		"consul://h?plain=false":          {false, ""},
		"redis://h?plain=true":            {true, ""},
		"mem:":                            {false, ""},
	} {
		t.Run(raw, func(t *testing.T) {
			store := open(t, raw)
			require.Equal(t, want.plain, stores.ViewOf(store).Plain)
			require.Equal(t, want.layout, stores.ViewOf(store).Layout)
		})
	}
}

func TestOnlyLayoutQueueHasLines(t *testing.T) {
	for layout, lines := range map[string]bool{"key": false, "queue": true, "claim": false} {
		_, ok := open(t, "etcd://127.0.0.1:1?layout="+layout).KV.(kv.Queue)
		require.Equal(t, lines, ok, layout)
	}
	require.ErrorIs(t, ask(t, "etcd://127.0.0.1:1?layout=queue", "a/b", time.Minute), kv.ErrInvalid)
	require.ErrorIs(t, ask(t, "etcd://127.0.0.1:1?layout=claim", "a/b", time.Minute), kv.ErrInvalid)
	require.Equal(t, "/a/", stores.ViewOf(open(t, "etcd://127.0.0.1:1//?layout=queue&suffix=/")).Key("a"))
	require.NotErrorIs(t, ask(t, "etcd://127.0.0.1:1?layout=key", "a/b", 50*time.Millisecond), kv.ErrInvalid)
}

// ask reads a name in a store that does not answer.
func ask(t *testing.T, url, name string, within time.Duration) error {
	t.Helper()
	store := open(t, url).KV
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	_, err := store.Get(ctx, name)
	return err
}

// open opens a store that is not asked anything.
func open(t *testing.T, raw string) *stores.Store {
	t.Helper()
	a, err := stores.Parse(raw, nothing)
	require.NoError(t, err)
	store, err := a.Open()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

func TestParseRefusesWhatCannotBeUsedAndSaysWhatCan(t *testing.T) {
	const (
		all      = "use mem:, file:///directory, etcd://host:port[,host:port...]/prefix, consul://host:port/prefix, redis://host:port/database, sqlite:///file, postgres://user@host:port/database, mysql://user@host:port/database, paxos://host:port?peers=host:port,host:port&cluster=name (TLS: etcds, consuls, rediss)"
		tls      = "cacert cert key servername insecure-skip-verify"
		etcd     = "use etcd://host:port[,host:port...]/prefix, parameters " + tls + " layout suffix plain expiry"
		consul   = "use consul://host:port/prefix, parameters " + tls + " dc namespace partition min-ttl plain expiry"
		redis    = "use redis://host:port/database (several hosts with ?master=name or ?cluster=true), parameters " + tls + " master cluster sentinel-user prefix quarantine plain expiry"
		sqlite   = "use sqlite:///file, parameters table expiry filesystem"
		postgres = "use postgres://user@host:port/database, parameters sslmode sslrootcert sslcert sslkey target_session_attrs application_name default_query_exec_mode schema table expiry"
		mysql    = "use mysql://user@host:port/database, parameters " + tls + " tls table expiry"
		file     = "use file:///directory, parameters filesystem"
		portText = "has a port that is not a number from 1 to 65535"
	)
	for raw, want := range map[string]string{
		"":                                 "the store is not a URL; " + all,
		"localhost":                        "the store is not a URL; " + all,
		"//h":                              "the store is not a URL; " + all,
		"zookeeper://h:2181":               `store zookeeper:...: unknown scheme "zookeeper"; ` + all,
		"sqlite://h/f":                     "store sqlite:...: a file has no host: write three slashes; " + sqlite,
		"sqlite:f":                         "store sqlite:...: the file is not an absolute path; " + sqlite,
		"sqlite:///f?schema=x":             `store sqlite:...: unknown parameter "schema"; ` + sqlite,
		"sqlite:///f?expiry=never":         `store sqlite:...: parameter "expiry" is neither store nor observer; ` + sqlite,
		"sqlite:///f?table=a:b":            `store sqlite:...: parameter "table" is longer than 63 bytes or has one of the characters : { } ? $; ` + sqlite,
		"postgres:":                        "store postgres:...: no host, and no PGHOST; " + postgres,
		"postgres://h/a/b":                 "store postgres:...: the path is more than the name of a database; table and schema are parameters; " + postgres,
		"postgres://h?sslmode=x":           "store postgres:...: sslmode is invalid; " + postgres,
		"postgres://h?table=$x":            `store postgres:...: parameter "table" is longer than 63 bytes or has one of the characters : { } ? $; ` + postgres,
		"mysql:":                           "store mysql:...: no host, and no MYSQL_HOST; " + mysql,
		"mysql://u@a,b/d":                  "store mysql:...: several hosts; name the one that is written to, or a proxy before them; " + mysql,
		"mysql://u@h":                      "store mysql:...: the path is not the name of a database; " + mysql,
		"mysql://h/d":                      "store mysql:...: no user: write user@; " + mysql,
		"mariadb://u@h/d?tls=perhaps":      `store mariadb:...: parameter "tls" is neither true nor false; ` + mysql,
		"mysql://u@h/d?servername=x":       `store mysql:...: parameter "servername" without TLS; ` + mysql,
		"mem://h":                          "store mem:...: memory has no host and no path; use mem:",
		"file://h/dir":                     "store file:...: a directory has no host: write three slashes; " + file,
		"file:dir":                         "store file:...: the directory is not an absolute path; " + file,
		"file:///dir?x=1":                  `store file:...: unknown parameter "x"; ` + file,
		"etcd:":                            "store etcd:...: no host, and no ETCDCTL_ENDPOINTS; " + etcd,
		"etcd:///jobs":                     "store etcd:...: no host, and no ETCDCTL_ENDPOINTS; " + etcd,
		"etcd://h:0":                       "store etcd:...: host 1 " + portText + "; " + etcd,
		"etcd://a:1,b:x":                   "store etcd:...: host 2 " + portText + "; " + etcd,
		"etcd://a:1,":                      "store etcd:...: host 2 is empty; " + etcd,
		"etcd://:2379":                     "store etcd:...: host 1 is empty; " + etcd,
		"etcd://[::1:2379":                 "store etcd:...: host 1 is not an IPv6 address in brackets; " + etcd,
		"etcd://a b":                       "store etcd:...: host 1 is not a host name or address; " + etcd,
		"etcd://h#x":                       "store etcd:...: a # that is not written as %23; " + etcd,
		"etcd://h/%zz":                     "store etcd:...: the path is malformed; " + etcd,
		"etcd://h?%zz":                     "store etcd:...: the part after the question mark is malformed; " + etcd,
		"etcd://h?timeout=5s":              `store etcd:...: unknown parameter "timeout"; ` + etcd,
		"etcd://h?p@ss=5s":                 "store etcd:...: unknown parameter in the part after the question mark; " + etcd,
		"etcd://user@h":                    "store etcd:...: a user without a password: write user:password@, or set ETCDCTL_PASSWORD; " + etcd,
		"etcd://h?servername=x":            `store etcd:...: parameter "servername" without TLS; ` + etcd,
		"etcds://h?insecure-skip-verify=x": "store etcd:...: insecure-skip-verify is neither true nor false; " + etcd,
		"etcd://h?cert=/x":                 "store etcd:...: cert and key go together; " + etcd,
		"etcd://h?layout=line":             `store etcd:...: parameter "layout" is none of key, queue and claim; ` + etcd,
		"etcd://h?layout=":                 `store etcd:...: parameter "layout" is empty: give it a value, or leave it out; ` + etcd,
		"etcd://h?plain":                   `store etcd:...: parameter "plain" is empty: give it a value, or leave it out; ` + etcd,
		"etcd://h?layout=key&layout=queue": `store etcd:...: parameter "layout" is given twice; ` + etcd,
		"etcd://h?layout=Queue":            `store etcd:...: parameter "layout" is none of key, queue and claim; ` + etcd,
		"etcd://h?plain=verbatim":          `store etcd:...: parameter "plain" is neither true nor false; ` + etcd,
		"consul://h?plain=verbatim":        `store consul:...: parameter "plain" is neither true nor false; ` + consul,
		"consul://h?layout=queue":          `store consul:...: unknown parameter "layout"; ` + consul,
		"consul://h//locks":                "store consul:...: two slashes before the prefix; no key of Consul begins with a slash: write one; " + consul,
		"redis://h?plain=verbatim":         `store redis:...: parameter "plain" is neither true nor false; ` + redis,
		"redis://h?layout=claim":           `store redis:...: unknown parameter "layout"; ` + redis,
		"file:///dir?plain=true":           `store file:...: unknown parameter "plain"; ` + file,
		"consul://a,b":                     "store consul:...: several hosts; a Consul agent knows its servers, so name one agent; " + consul,
		"consul:":                          "store consul:...: no host, and no CONSUL_HTTP_ADDR; " + consul,
		"consul://u:p@h":                   "store consul:...: a user and a password; Consul has tokens: write token@, or set CONSUL_HTTP_TOKEN; " + consul,
		"consul://h?min-ttl=soon":          `store consul:...: parameter "min-ttl" is not a duration such as 10s; ` + consul,
		"redis:":                           "store redis:...: no host; " + redis,
		"redis://h:99999":                  "store redis:...: host 1 " + portText + "; " + redis,
		"redis://h?quarantine=-1s":         `store redis:...: parameter "quarantine" is not a duration such as 10s; ` + redis,
		"redis://h/jobs":                   "store redis:...: the path is not the number of a database; prefix is a parameter; " + redis,
		"redis://a,b":                      "store redis:...: several hosts, but neither cluster=true nor master=name; " + redis,
		"redis://a?cluster=true&master=m":  "store redis:...: cluster and master exclude each other; " + redis,
		"redis://a/1?cluster=true":         "store redis:...: a cluster has only database 0; " + redis,
		"redis://a?cluster=perhaps":        `store redis:...: parameter "cluster" is neither true nor false; ` + redis,
		"etcd://h?expiry=never":            `store etcd:...: parameter "expiry" is neither store nor observer; ` + etcd,
		"consul://h?expiry=never":          `store consul:...: parameter "expiry" is neither store nor observer; ` + consul,
		"redis://h?expiry=never":           `store redis:...: parameter "expiry" is neither store nor observer; ` + redis,

		"etcd://h?expiry=observer&plain=true":   "store etcd:...: expiry=observer excludes plain and the layouts queue and claim: those records end with their lease, which etcd judges; " + etcd,
		"etcd://h?expiry=observer&layout=claim": "store etcd:...: expiry=observer excludes plain and the layouts queue and claim: those records end with their lease, which etcd judges; " + etcd,
		"consul://h?expiry=observer&plain=true": "store consul:...: expiry=observer and plain exclude each other: a plain value is a leader's as long as a session holds its key, which Consul judges; " + consul,
		"redis://h?expiry=observer&plain=true":  "store redis:...: expiry=observer and plain exclude each other: a plain value ends with its key's expiry, which the server judges; " + redis,
	} {
		t.Run(raw, func(t *testing.T) {
			_, err := stores.Parse(raw, nothing)
			require.Error(t, err)
			want = strings.Replace(want, "store etcd:", "store "+strings.SplitN(raw, ":", 2)[0]+":", 1)
			require.EqualError(t, err, want)
		})
	}
}

func TestTheHelpNamesEachScheme(t *testing.T) {
	for _, beginning := range stores.Beginnings() {
		require.Contains(t, stores.Forms(), beginning)
	}
}

func TestNothingShowsThePassword(t *testing.T) {
	const secret = "hunter2"
	for _, raw := range []string{
		"redis://user:hunter2@h:1", "redis://user:hunter2", "redis://user:hunter2@h:x", "redis://hunter2@@h",
		"redis://user:hunter2@h:1#x", "redis://user:hun%ter2hunter2@h", "etcd://hunter2", "etcd://root:hunter2@:1",
		"consul://hunter2@", "consul://hunter2:hunter2@h", "foo://user:hunter2@h", "redis://h?hunter2@=1",
		"postgres://user:hunter2@127.0.0.1:1/d", "postgres://user:hunter2@h/d?sslmode=x",
		"mysql://user:hunter2@127.0.0.1:1/d", "mysql://user:hunter2@h", "mariadb://user:hunter2@127.0.0.1:1/d?tls=true",
		"redis://user:hunter2@127.0.0.1:1?cluster=hunter2", "redis://u:hunter2@127.0.0.1:1/x/hunter2",
	} {
		t.Run(raw, func(t *testing.T) {
			a, err := stores.Parse(raw, nothing)
			if err != nil {
				require.NotContains(t, err.Error(), secret)
				return
			}
			if !strings.Contains(raw, "//hunter2") { // there it is where a host belongs
				require.NotContains(t, a.String(), secret)
			}
		})
	}
}

func TestTheEnvironmentFillsInWhatTheURLLeavesOut(t *testing.T) {
	env := map[string]string{
		"ETCDCTL_ENDPOINTS": "https://a:1,https://b:2",
	}
	a, err := stores.Parse("etcd:///jobs", func(name string) string { return env[name] })
	require.NoError(t, err)
	require.Equal(t, "etcd://a:1,b:2/jobs", a.String())
	store, err := a.Open()
	require.NoError(t, err)
	defer store.Close()
	require.Equal(t, []string{"https://a:1", "https://b:2"}, stores.Endpoints(store))
}

func TestTheDefaultIsADirectoryOfTheUsersOwn(t *testing.T) {
	dir := t.TempDir()
	url, err := stores.Default(func(string) string { return dir })
	require.NoError(t, err)
	require.Equal(t, "file://"+dir+"/elect", url)
	info, err := os.Stat(filepath.Join(dir, "elect"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

func TestTheDefaultRefusesADirectoryThatOthersCanReach(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(path string) error
		want string
	}{
		{"open to others", func(path string) error { return os.Mkdir(path, 0o755) }, "is open to other users"},
		{"a file", func(path string) error { return os.WriteFile(path, nil, 0o600) }, "is not a directory"},
		{"a link", func(path string) error { return os.Symlink(os.TempDir(), path) }, "is not a directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, c.make(filepath.Join(dir, "elect")))
			_, err := stores.Default(func(string) string { return dir })
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "name another with --store or ELECT_STORE")
		})
	}
}

// judge names the type that the store has for who judges expiry, and requires that
// the other way to judge has another.
func judge(s *stores.Store) string {
	view := stores.ViewOf(s)
	kind := func(observed bool) string { return fmt.Sprintf("%T", view.Store(false, observed, oldlock.OneKey)) }
	if kind(s.Observed()) != fmt.Sprintf("%T", s.KV) || kind(!s.Observed()) == kind(s.Observed()) {
		return ""
	}
	return kind(s.Observed())
}
