//go:build unix

package testenv

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
)

// The users of [StartEtcdWithAuth], their passwords, and the role that gives
// EtcdUser its rights.
const (
	EtcdRoot         = "root"
	EtcdRootPassword = "password-of-root"
	EtcdUser         = "candidate"
	EtcdUserPassword = "password-of-candidate"
	EtcdRole         = "elections"
)

// StartEtcdWithAuth starts an etcd of the test's own, as [StartEtcd] does, on
// which only users may do anything: EtcdRoot all, and EtcdUser, by its EtcdRole,
// read and write every key. UserRevokeRole takes that from it, UserGrantRole
// gives it back, both at once.
func StartEtcdWithAuth(t testing.TB, args ...string) *Server {
	t.Helper()
	s := StartEtcd(t, args...)
	all := base64.StdEncoding.EncodeToString([]byte{0}) // from the first key, and to the last
	type body = map[string]any
	for _, call := range []struct {
		path string
		body body
	}{
		{"user/add", body{"name": EtcdRoot, "password": EtcdRootPassword}},
		{"role/add", body{"name": EtcdRoot}},
		{"user/grant", body{"user": EtcdRoot, "role": EtcdRoot}},
		{"user/add", body{"name": EtcdUser, "password": EtcdUserPassword}},
		{"role/add", body{"name": EtcdRole}},
		{"role/grant", body{"name": EtcdRole, "perm": body{"permType": "READWRITE", "key": all, "range_end": all}}},
		{"user/grant", body{"user": EtcdUser, "role": EtcdRole}},
		{"enable", body{}},
	} {
		text, err := json.Marshal(call.body)
		s.must(err)
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		s.must(postJSON(ctx, "http://"+s.Addr()+"/v3/auth/"+call.path, string(text), new(any)))
		cancel()
	}
	return s
}

// ConsulManagementToken may do everything on a server of [StartConsulWithACL].
const ConsulManagementToken = "5eb1a7c2-0d3f-4a57-9a86-2f0c64d81e39"

// StartConsulWithACL starts a Consul server of the test's own, as [StartConsul]
// does, on which nobody may do anything without a token. With
// ConsulManagementToken a test makes tokens for others, takes them away, and
// changes what they may do. The server forgets none of it when it restarts.
func StartConsulWithACL(t testing.TB, settings ...map[string]any) *Server {
	t.Helper()
	acl := setting{
		"enabled": true, "default_policy": "deny",
		"tokens": setting{"initial_management": ConsulManagementToken, "agent": ConsulManagementToken},
		// What a token may do is looked up at the leader, each time.
		"token_ttl": "0s", "policy_ttl": "0s", "role_ttl": "0s",
	}
	s := startOwn(t, func() (*Server, error) {
		s, err := newConsul(append([]setting{{"acl": acl}}, settings...)...)
		if err == nil {
			s.healthy = consulManages
		}
		return s, err
	})
	return s
}

// consulManages succeeds once the server has a leader that knows the management
// token.
func consulManages(ctx context.Context, addr string) error {
	if err := consulLed(ctx, addr); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/v1/acl/token/self", nil)
	if err != nil {
		return err
	}
	req.Header.Set("X-Consul-Token", ConsulManagementToken)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("consul does not know its management token: %s", resp.Status)
	}
	return nil
}
