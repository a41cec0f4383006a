//go:build unix

package stores_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

// TestPostgreSQLIsReachedByTLS has a server whose certificate is for localhost, and no
// address, and users who are let in by TLS alone.
func TestPostgreSQLIsReachedByTLS(t *testing.T) {
	authority := testenv.NewAuthority(t)
	server := testenv.StartPostgresWithTLS(t, authority, []string{"localhost"},
		"hostssl all app all scram-sha-256", "hostssl all certified all trust clientcert=verify-ca")
	name := testenv.NewPostgresDatabase(t, server.Addr())
	do := ofPostgres(t, server.Addr(), name)
	do("CREATE USER app PASSWORD 'hunter2'")
	do("CREATE USER certified")
	do("GRANT ALL ON SCHEMA public TO app, certified")
	_, _, ca := authority.Files()
	_, _, others := testenv.NewAuthority(t).Files()

	byAddr := "postgres://app:hunter2@" + server.Addr() + "/" + name + "?sslmode="
	byName := strings.Replace(byAddr, "127.0.0.1", "localhost", 1)
	require.NoError(t, reach(t, byName+"verify-full&sslrootcert="+ca, nil))
	require.ErrorContains(t, reach(t, byAddr+"verify-full&sslrootcert="+ca, nil), "127.0.0.1", "it is for another host")
	require.NoError(t, reach(t, byAddr+"verify-ca&sslrootcert="+ca, nil), "nobody asked for whom it is")
	for _, mode := range []string{"verify-full", "verify-ca"} {
		require.ErrorContains(t, reach(t, byName+mode+"&sslrootcert="+others, nil), "unknown authority", mode)
	}
	require.ErrorContains(t, reach(t, byName+"verify-full", nil), "unknown authority", "nobody has vouched for it")
	require.NoError(t, reach(t, byAddr+"require", nil), "nobody asked who it is")
	require.NoError(t, reach(t, byAddr+"prefer", nil))
	require.ErrorContains(t, reach(t, byAddr+"disable", nil), "no encryption")

	certified := strings.Replace(byName, "app:hunter2@", "certified@", 1) + "verify-full&sslrootcert=" + ca
	cert, key, _ := authority.Files()
	require.ErrorContains(t, reach(t, certified, nil), "requires a valid client certificate")
	table := "&table=of_the_certified"
	require.NoError(t, reach(t, certified+table+"&sslcert="+cert+"&sslkey="+key, nil))
	cert, key, _ = testenv.NewAuthority(t).Files()
	require.Error(t, reach(t, certified+table+"&sslcert="+cert+"&sslkey="+key, nil), "somebody else has vouched for it")
}

func TestAPostgreSQLWithoutTLSIsNotReachedByIt(t *testing.T) {
	addr := testenv.Postgres(t)
	url := testenv.PostgresURL(addr, testenv.NewPostgresDatabase(t, addr))
	for _, mode := range []string{"require", "verify-ca", "verify-full"} {
		require.ErrorContains(t, reach(t, strings.Replace(url, "disable", mode, 1), nil), "refused TLS", mode)
	}
}

// TestMariaDBIsReachedByTLS has a server whose certificate is for localhost, and no
// address, and which demands TLS.
func TestMariaDBIsReachedByTLS(t *testing.T) {
	authority := testenv.NewAuthority(t)
	cert, key, ca := authority.Files("localhost")
	_, _, others := testenv.NewAuthority(t).Files()
	readable(t, cert, key, ca)
	server := testenv.StartMariaDB(t, "--ssl-cert="+cert, "--ssl-key="+key)
	name := testenv.NewMySQLDatabase(t, server.Addr())
	byAddr := "mysql://" + testenv.MySQLUser + "@" + server.Addr() + "/" + name
	byName := strings.Replace(byAddr, "127.0.0.1", "localhost", 1)
	require.NoError(t, reach(t, byAddr, nil))
	ofMariaDB(t, server.Addr(), name)("SET GLOBAL require_secure_transport = ON")

	require.ErrorContains(t, reach(t, byAddr, nil), "Access denied", "it does not say more")
	require.NoError(t, reach(t, byName+"?cacert="+ca, nil))
	require.ErrorContains(t, reach(t, byAddr+"?cacert="+ca, nil), "127.0.0.1", "it is for another host")
	require.NoError(t, reach(t, byAddr+"?servername=localhost&cacert="+ca, nil))
	require.ErrorContains(t, reach(t, byName+"?cacert="+others, nil), "unknown authority")
	require.ErrorContains(t, reach(t, byName+"?tls=true", nil), "unknown authority", "nobody has vouched for it")
}

func TestAMariaDBWithoutTLSIsNotReachedByIt(t *testing.T) {
	server := testenv.StartMariaDB(t, "--skip-ssl")
	name := testenv.NewMySQLDatabase(t, server.Addr())
	url := "mysql://" + testenv.MySQLUser + "@" + server.Addr() + "/" + name
	require.NoError(t, reach(t, url, nil))
	require.ErrorContains(t, reach(t, url+"?tls=true", nil), "TLS")
}
