package stores_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/cmd/elect/internal/stores"
)

// public are the variables that stores are opened by and that hold no secret.
const public = `
	ELECT_CACERT ELECT_CERT ELECT_KEY XDG_RUNTIME_DIR XDG_STATE_HOME
	ETCDCTL_CACERT ETCDCTL_CERT ETCDCTL_ENDPOINTS ETCDCTL_INSECURE_SKIP_TLS_VERIFY ETCDCTL_INSECURE_TRANSPORT ETCDCTL_KEY
	CONSUL_CACERT CONSUL_CAPATH CONSUL_CLIENT_CERT CONSUL_CLIENT_KEY CONSUL_GRPC_ADDR CONSUL_GRPC_CACERT
	CONSUL_GRPC_CAPATH CONSUL_HTTP_ADDR CONSUL_HTTP_SSL CONSUL_HTTP_SSL_VERIFY CONSUL_HTTP_TOKEN_FILE
	CONSUL_NAMESPACE CONSUL_PARTITION CONSUL_TLS_SERVER_NAME
	MYSQL_HOST MYSQL_TCP_PORT
	PGAPPNAME PGCHANNELBINDING PGCONNECT_TIMEOUT PGDATABASE PGHOST PGMAXPROTOCOLVERSION PGMINPROTOCOLVERSION PGOPTIONS
	PGPASSFILE PGPORT PGREQUIREAUTH PGSERVICE PGSERVICEFILE PGSSLCERT PGSSLCERTMODE PGSSLKEY PGSSLMODE PGSSLNEGOTIATION PGSSLROOTCERT
	PGSSLSNI PGTARGETSESSIONATTRS PGTZ PGUSER`

func TestEachVariableThatAStoreIsOpenedByIsKnownForASecretOrForNone(t *testing.T) {
	known := strings.Fields(public)
	for _, scheme := range []string{"mem:", "etcd://h", "consul://h", "redis://h", "postgres://h/d", "mysql://u@h/d"} {
		a, err := stores.Parse(scheme, func(string) string { return "" })
		require.NoError(t, err)
		require.Contains(t, a.Secrets(), "ELECT_STORE")
		for _, name := range a.Secrets() {
			require.NotContains(t, strings.Fields(public), name)
			known = append(known, name)
		}
	}
	read := variables(t, ".")
	read = append(read, variables(t, sources(t, "github.com/hashicorp/consul/api"))...)
	read = append(read, variables(t, sources(t, "github.com/jackc/pgx/v5/pgconn"))...)
	for _, name := range []string{"PGPASSWORD", "MYSQL_PWD", "CONSUL_HTTP_AUTH", "ETCDCTL_USER", "PGSSLMODE"} {
		require.Contains(t, read, name, "the sources are not read right")
	}
	for _, name := range read {
		require.Contains(t, known, name, "does it hold a secret? say so in the file of the store, or here")
	}
}

// sources returns the directory of a package's sources.
func sources(t *testing.T, pkg string) string {
	t.Helper()
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", pkg).Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(dir))
}

// variables returns the environment variables that the sources in a directory name.
func variables(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	quoted := regexp.MustCompile(`"(?:(?:ELECT|XDG|ETCDCTL|CONSUL|REDISCLI|MYSQL)_[A-Z_]+|PG[A-Z_]+)"`)
	names := []string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, name := range quoted.FindAllString(string(text), -1) {
			names = append(names, strings.Trim(name, `"`))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func TestASecretInTheURLIsExposed(t *testing.T) {
	for url, want := range map[string]string{
		"etcd://u:secret@h":       "ELECT_STORE, ETCDCTL_PASSWORD",
		"consul://secret@h":       "ELECT_STORE, CONSUL_HTTP_TOKEN or CONSUL_HTTP_TOKEN_FILE",
		"redis://:secret@h":       "ELECT_STORE, REDISCLI_AUTH",
		"postgres://u:secret@h/d": "ELECT_STORE, PGPASSWORD or PGPASSFILE",
		"mysql://u:secret@h/d":    "ELECT_STORE, MYSQL_PWD",
		"postgres://u@h/d":        "",
		"redis://u@h":             "",
		"consul://h":              "",
		"file:///d":               "",
		"mem:":                    "",
	} {
		a, err := stores.Parse(url, func(string) string { return "" })
		require.NoError(t, err, url)
		instead, ok := a.Exposed()
		require.Equal(t, want, instead)
		require.Equal(t, want != "", ok)
	}
}
