package stores_test

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/cmd/elect/internal/stores"
)

// A URL without TLS would send in clear text what the environment says to protect.
func TestAnEnvironmentThatWantsTLSIsNotOverruledByAURL(t *testing.T) {
	for _, c := range []struct{ raw, variable, value, want string }{
		{"consul://token@h", "CONSUL_HTTP_SSL", "true", "no TLS, but CONSUL_HTTP_SSL=true: write consuls://, or unset that"},
		{"consul://token@h", "CONSUL_HTTP_SSL", "1", "no TLS, but CONSUL_HTTP_SSL=true: write consuls://, or unset that"},
		{"consul://token@h", "CONSUL_HTTP_SSL", "yes", "CONSUL_HTTP_SSL is neither true nor false"},
		{"consul:///jobs", "CONSUL_HTTP_SSL", "yes", "CONSUL_HTTP_SSL is neither true nor false"},
		{"consuls://h", "CONSUL_HTTP_SSL_VERIFY", "no", "CONSUL_HTTP_SSL_VERIFY is neither true nor false"},
		{"consuls://h?insecure-skip-verify=false", "CONSUL_HTTP_SSL_VERIFY", "false", "insecure-skip-verify=false, but CONSUL_HTTP_SSL_VERIFY=false: unset that, or leave the parameter out"},
		{"etcd://u:p@h", "ETCDCTL_INSECURE_TRANSPORT", "false", "no TLS, but ETCDCTL_INSECURE_TRANSPORT=false: write etcds://, or unset that"},
		{"etcd://h", "ETCDCTL_INSECURE_TRANSPORT", "no", "ETCDCTL_INSECURE_TRANSPORT is neither true nor false"},

		{"consul://h", "CONSUL_HTTP_SSL", "false", ""},
		{"consuls://h", "CONSUL_HTTP_SSL", "true", ""},
		{"consuls://h", "CONSUL_HTTP_SSL", "false", ""}, // more than is wanted
		{"consul://h?insecure-skip-verify=true", "CONSUL_HTTP_SSL", "true", ""},
		{"consuls://h?insecure-skip-verify=true", "CONSUL_HTTP_SSL_VERIFY", "true", ""},
		{"etcds://h", "ETCDCTL_INSECURE_TRANSPORT", "false", ""},
		{"etcd://h", "ETCDCTL_INSECURE_TRANSPORT", "true", ""},
	} {
		t.Run(c.raw+" "+c.variable+"="+c.value, func(t *testing.T) {
			t.Setenv(c.variable, c.value)
			t.Setenv("CONSUL_HTTP_ADDR", "127.0.0.1:1")
			_, err := stores.Parse(c.raw, os.Getenv)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "token")
		})
	}
}

// What goes over the wire, with the address from the environment too.
func TestNoTokenIsSentInClearTextWhereTheEnvironmentWantsTLS(t *testing.T) {
	for _, raw := range []string{"consul:///jobs", "consul://127.0.0.1:1/jobs", "consuls:///jobs"} {
		t.Run(raw, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			heard := make(chan string, 1)
			go func() {
				conn, err := listener.Accept()
				if err != nil {
					heard <- ""
					return
				}
				defer conn.Close()
				_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
				text := make([]byte, 4096)
				n, _ := conn.Read(text)
				heard <- string(text[:n])
			}()
			t.Setenv("CONSUL_HTTP_ADDR", listener.Addr().String())
			t.Setenv("CONSUL_HTTP_SSL", "true")
			t.Setenv("CONSUL_HTTP_TOKEN", "hunter2")
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if a, err := stores.Parse(strings.Replace(raw, "127.0.0.1:1", listener.Addr().String(), 1), os.Getenv); err == nil {
				store, err := a.Open()
				require.NoError(t, err)
				_, err = store.KV.Get(ctx, "n")
				require.Error(t, err)
			} else {
				require.ErrorContains(t, err, "CONSUL_HTTP_SSL=true")
			}
			require.NoError(t, listener.Close())
			require.NotContains(t, <-heard, "hunter2")
		})
	}
}
