//go:build unix

package main

import (
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

// kinds returns what people call each kind of server, and how its URLs look.
func kinds() map[string][2]string {
	return map[string][2]string{
		"etcd":     {"etcd", "etcd://%"},
		"consul":   {"Consul", "consul://%"},
		"redis":    {"Redis", "redis://%"},
		"postgres": {"PostgreSQL", "postgres://u@%/d"},
		"mysql":    {"MySQL or MariaDB", "mysql://u@%/d"},
	}
}

// refused runs elect with a store that it cannot use, and returns what it says.
func refused(t *testing.T, url string) string {
	t.Helper()
	status, stdout, stderr := finish(t, "status", "--store", url, "x")
	require.Equal(t, 125, status, stderr)
	require.Empty(t, stdout)
	require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
	t.Log(stderr)
	return stderr
}

// named wants the refusal of a store to say something. A server that took longer to answer than
// elect waits to name it, on a busy machine, is asked again.
func named(t *testing.T, url, want string) {
	t.Helper()
	stderr := ""
	for range 5 {
		if stderr = refused(t, url); strings.Contains(stderr, want) {
			return
		}
	}
	require.Contains(t, stderr, want)
}

func TestAServerOfAnotherKindThanTheURLsIsNamed(t *testing.T) {
	addrs := map[string]string{
		"etcd": testenv.Etcd(t), "consul": testenv.Consul(t), "redis": testenv.Redis(t),
		"postgres": testenv.Postgres(t), "mysql": testenv.MariaDB(t),
	}
	for scheme, want := range kinds() {
		for there, addr := range addrs {
			if scheme == there {
				continue
			}
			t.Run(scheme+" at "+there, func(t *testing.T) {
				t.Parallel() // mostly it waits
				named(t, strings.Replace(want[1], "%", addr, 1), kinds()[there][0]+" is at "+addr+", where the URL has "+want[0]+": use "+there+"://")
			})
		}
	}
}

func TestAServerOfTheRightKindIsNotDoubted(t *testing.T) {
	t.Parallel()
	redis := testenv.StartRedis(t, "--requirepass", "secret").Addr()
	for url, want := range map[string]string{
		"redis://" + redis: "NOAUTH",
		"etcd://" + testenv.StartEtcdWithAuth(t).Addr():                         "user name is empty",
		"consul://" + testenv.StartConsulWithACL(t).Addr():                      "403",
		"mysql://nobody:x@" + testenv.MariaDB(t) + "/d":                         "nobody",
		"postgres://nobody@" + testenv.Postgres(t) + "/nothing?sslmode=disable": "nobody",
	} {
		t.Run(url, func(t *testing.T) {
			stderr := refused(t, url)
			for range 4 { // as in named
				if strings.Contains(stderr, "can be reached") {
					stderr = refused(t, url)
				}
			}
			require.Contains(t, stderr, want)
			require.NotContains(t, stderr, "where the URL has")
			require.NotContains(t, stderr, "can be reached")
		})
	}
}

func TestAServerThatIsNoStoreIsSaidToBeNone(t *testing.T) {
	web, secure := httptest.NewServer(nil), httptest.NewTLSServer(nil)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and says nothing
	require.NoError(t, err)
	curt, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() {
		web.Close()
		secure.Close()
		silent.Close()
		curt.Close()
	})
	go func() {
		for conn, err := curt.Accept(); err == nil; conn, err = curt.Accept() {
			conn.Close()
		}
	}()
	for _, kind := range []string{"redis", "consul", "postgres"} {
		want := kinds()[kind]
		tls := "what is at % wants TLS: use " + kind + "s://"
		if kind == "postgres" { // it begins without
			tls = "something that speaks TLS is at %, where the URL has " + want[0]
		}
		for addr, says := range map[string]string{
			web.Listener.Addr().String():    "something that speaks HTTP is at %, where the URL has " + want[0],
			secure.Listener.Addr().String(): tls,
			silent.Addr().String():          "% can be reached: is it " + want[0] + " that is there?",
			curt.Addr().String():            "% can be reached: is it " + want[0] + " that is there?",
		} {
			t.Run(want[0]+" "+says, func(t *testing.T) {
				t.Parallel() // mostly it waits
				named(t, strings.Replace(want[1], "%", addr, 1), strings.Replace(says, "%", addr, 1))
			})
		}
	}
}
