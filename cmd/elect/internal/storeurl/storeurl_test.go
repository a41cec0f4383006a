package storeurl_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/cmd/elect/internal/storeurl"
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
	} {
		t.Run(raw, func(t *testing.T) {
			a, err := storeurl.Parse(raw, nothing)
			require.NoError(t, err)
			require.Equal(t, want, a.String())
		})
	}
}

func TestOpenReturnsAStoreWithItsClient(t *testing.T) {
	for raw, has := range map[string]func(*storeurl.Store) bool{
		"mem:":                     func(s *storeurl.Store) bool { return s.Holds() == nil },
		"file://" + t.TempDir():    func(s *storeurl.Store) bool { return s.Dir != "" },
		"etcd://127.0.0.1:1/jobs":  func(s *storeurl.Store) bool { return s.Etcd != nil },
		"consul://127.0.0.1:1":     func(s *storeurl.Store) bool { return s.Consul != nil },
		"redis://127.0.0.1:1":      func(s *storeurl.Store) bool { return s.Redis != nil },
		"redis://a,b?cluster=true": func(s *storeurl.Store) bool { return s.Redis != nil },
	} {
		t.Run(raw, func(t *testing.T) {
			a, err := storeurl.Parse(raw, nothing)
			require.NoError(t, err)
			store, err := a.Open()
			require.NoError(t, err)
			require.NotNil(t, store.Store)
			require.True(t, has(store))
			require.NoError(t, store.Close())
		})
	}
}

func TestParseRefusesWhatCannotBeUsedAndSaysWhatCan(t *testing.T) {
	const (
		all      = "use mem:, file:///directory, etcd://host:port[,host:port...]/prefix, consul://host:port/prefix, redis://host:port/database (TLS: etcds, consuls, rediss)"
		tls      = "cacert cert key servername insecure-skip-verify"
		etcd     = "use etcd://host:port[,host:port...]/prefix, parameters " + tls
		consul   = "use consul://host:port/prefix, parameters " + tls + " dc namespace partition min-ttl"
		redis    = "use redis://host:port/database (several hosts with ?master=name or ?cluster=true), parameters " + tls + " master cluster sentinel-user prefix quarantine"
		file     = "use file:///directory"
		portText = "has a port that is not a number from 1 to 65535"
	)
	for raw, want := range map[string]string{
		"":                                 "the store is not an URL; " + all,
		"localhost":                        "the store is not an URL; " + all,
		"//h":                              "the store is not an URL; " + all,
		"zookeeper://h:2181":               `store zookeeper:...: unknown scheme "zookeeper"; ` + all,
		"sqlite:///f":                      `store sqlite:...: unknown scheme "sqlite"; ` + all,
		"mem://h":                          "store mem:...: memory has no host and no path; use mem:",
		"file://h/dir":                     "store file:...: a directory has no host: write three slashes; " + file,
		"file:dir":                         "store file:...: the directory is not given from the root on; " + file,
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
		"redis://a/1?cluster=true":         "store redis:...: a cluster has no database but 0; " + redis,
		"redis://a?cluster=perhaps":        `store redis:...: parameter "cluster" is neither true nor false; ` + redis,
	} {
		t.Run(raw, func(t *testing.T) {
			_, err := storeurl.Parse(raw, nothing)
			require.Error(t, err)
			want = strings.Replace(want, "store etcd:", "store "+strings.SplitN(raw, ":", 2)[0]+":", 1)
			require.EqualError(t, err, want)
		})
	}
}

func TestNothingShowsThePassword(t *testing.T) {
	const secret = "hunter2"
	for _, raw := range []string{
		"redis://user:hunter2@h:1", "redis://user:hunter2", "redis://user:hunter2@h:x", "redis://hunter2@@h",
		"redis://user:hunter2@h:1#x", "redis://user:hun%ter2hunter2@h", "etcd://hunter2", "etcd://root:hunter2@:1",
		"consul://hunter2@", "consul://hunter2:hunter2@h", "foo://user:hunter2@h", "redis://h?hunter2@=1",
		"redis://user:hunter2@127.0.0.1:1?cluster=hunter2", "redis://u:hunter2@127.0.0.1:1/x/hunter2",
	} {
		t.Run(raw, func(t *testing.T) {
			a, err := storeurl.Parse(raw, nothing)
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
	a, err := storeurl.Parse("etcd:///jobs", func(name string) string { return env[name] })
	require.NoError(t, err)
	require.Equal(t, "etcd://a:1,b:2/jobs", a.String())
	store, err := a.Open()
	require.NoError(t, err)
	defer store.Close()
	require.Equal(t, []string{"https://a:1", "https://b:2"}, store.Etcd.Endpoints())
}

func TestTheDefaultIsADirectoryOfTheUsersOwn(t *testing.T) {
	dir := t.TempDir()
	url, err := storeurl.Default(func(string) string { return dir })
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
			_, err := storeurl.Default(func(string) string { return dir })
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "name another with --store or ELECT_STORE")
		})
	}
}
