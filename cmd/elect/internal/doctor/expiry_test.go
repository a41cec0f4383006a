//go:build unix

package doctor_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/cmd/elect/internal/stores"
	"github.com/electkv/election/internal/testenv"
)

func TestTheDoctorSaysWhoMayJudgeExpiry(t *testing.T) {
	const ttl = 500 * time.Millisecond
	for scheme, addr := range map[string]string{"etcd": testenv.Etcd(t), "consul": testenv.Consul(t)} {
		s := newStreet(t)
		s.url = func(params string) string { return scheme + "://" + addr + "/" + s.prefix + "?" + params }
		found := func(params, subject string) string {
			for _, f := range examine(s.ctx, s.open(params), ttl) {
				require.False(t, f.Level == stores.Fail && f.Subject != "TTL", f.Found)
				if f.Subject == subject {
					return string(f.Level) + " " + f.Found
				}
			}
			return ""
		}
		require.Regexp(t, "^OK candidates judge", found("expiry=observer", "clock"), scheme)
		require.Regexp(t, "^OK .* for at most 1.001s, .* for 500ms$", found("expiry=observer", "failover"), scheme)
		require.Empty(t, found("expiry=observer", "expiry"), scheme)
		if scheme == "consul" {
			require.Regexp(t, "^FAIL .* want at least 10s", found("", "TTL"))
			continue
		}
		require.Regexp(t, "expiry=observer candidates do", found("", "expiry"))
		require.Regexp(t, "^WARN .* for at most 3s", found("", "failover"))
	}
}

func TestTheDoctorSaysHowManyConnectionsAnAgentTakes(t *testing.T) {
	for limit, want := range map[int]string{
		0:   "OK any number from one address",
		30:  "WARN at most 30 from one address, for all processes there; a candidate's takes up to 52",
		200: "OK at most 200 from one address, for all processes there; a candidate's takes up to 52",
	} {
		server := testenv.StartConsul(t, map[string]any{"limits": map[string]any{"http_max_conns_per_client": limit}})
		s := newStreet(t)
		s.url = func(params string) string { return "consul://" + server.Addr() + "?" + params }
		found := ""
		for _, f := range examine(s.ctx, s.open("min-ttl=1s"), 5*time.Second) {
			if f.Subject == "connections" {
				found = string(f.Level) + " " + f.Found
			}
		}
		require.Equal(t, want, found)
	}
}
