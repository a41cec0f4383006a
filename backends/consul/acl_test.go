//go:build unix

package consulkv_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/consul"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// as returns a client with a new token that has the rules.
func as(t *testing.T, root *api.Client, addr, rules string) (*api.Client, string) {
	t.Helper()
	policy, _, err := root.ACL().PolicyCreate(&api.ACLPolicy{Name: newName(), Rules: rules}, nil)
	require.NoError(t, err)
	token, _, err := root.ACL().TokenCreate(&api.ACLToken{Policies: []*api.ACLLink{{ID: policy.ID}}}, nil)
	require.NoError(t, err)
	client, _ := dialCounted(t, addr, &api.Config{Token: token.SecretID})
	return client, token.SecretID
}

func TestADeniedCallIsUnknownAndKeepsTheTokenSecret(t *testing.T) {
	inEachForm(t, aDeniedCallIsUnknownAndKeepsTheTokenSecret)
}

func aDeniedCallIsUnknownAndKeepsTheTokenSecret(t *testing.T, opts *consulkv.Options) {
	addr := testenv.StartConsulWithACL(t).Addr()
	root, _ := dialCounted(t, addr, &api.Config{Token: testenv.ConsulManagementToken})
	trusted := consulkv.New(root, opts)
	name := newName()
	var rec kv.Record
	eventually(t, func() (err error) {
		rec, err = trusted.Create(t.Context(), name, signed("v", time.Minute))
		return err
	})

	for what, rules := range map[string]string{
		"nothing":           "",
		"reading":           `key_prefix "" { policy = "read" }`,
		"keys, no sessions": `key_prefix "" { policy = "write" }`,
		"sessions, no keys": `session_prefix "" { policy = "write" }`,
		"reading, sessions": `key_prefix "" { policy = "read" } session_prefix "" { policy = "write" }`,
	} {
		t.Run(what, func(t *testing.T) {
			client, secret := as(t, root, addr, rules)
			s := consulkv.New(client, opts)
			next := rec
			next.Value = "changed"
			other := newName()
			_, created := s.Create(t.Context(), other, signed("v", time.Minute))
			changed, published := s.Swap(t.Context(), name, rec, next)
			if published == nil {
				rec = changed
			}
			_, taken := s.Swap(t.Context(), name, rec, signed("v", time.Minute))
			_, refreshed := s.Refresh(t.Context(), name, rec)
			deleted := s.Delete(t.Context(), name, rec)
			errs := map[string]error{"create": created, "publish": published, "take over": taken, "refresh": refreshed, "delete": deleted}
			if what == "keys, no sessions" {
				// It may change the value, and remove the record.
				require.NoError(t, published)
				require.NoError(t, deleted)
				delete(errs, "publish")
				delete(errs, "delete")
			}
			if what == "reading, sessions" {
				require.NoError(t, refreshed, "a refresh writes no key")
				delete(errs, "refresh")
			}
			for op, err := range errs {
				unknown(t, err)
				require.Regexp(t, "(?i)403|permission denied", err.Error(), op)
				require.NotContains(t, err.Error(), secret, op)
				require.NotContains(t, err.Error(), testenv.ConsulManagementToken, op)
			}
			_, err := trusted.Get(t.Context(), other)
			require.ErrorIs(t, err, kv.ErrVacant)
			require.Zero(t, sessions(t, root, other))
			if what == "keys, no sessions" {
				rec = create(t, trusted, name, signed("v", time.Minute))
			}
			got, err := trusted.Refresh(t.Context(), name, rec)
			require.NoError(t, err)
			require.Equal(t, rec, got)
		})
	}
}

func TestTheDocumentedPermissionsSuffice(t *testing.T) {
	addr := testenv.StartConsulWithACL(t).Addr()
	root, _ := dialCounted(t, addr, &api.Config{Token: testenv.ConsulManagementToken})
	eventually(t, func() error {
		_, err := root.Agent().Self()
		return err
	})
	client, _ := as(t, root, addr, `key_prefix "elections/" { policy = "write" } session_prefix "" { policy = "write" }`)
	inEachForm(t, func(t *testing.T, opts *consulkv.Options) {
		s := consulkv.New(client, &consulkv.Options{Prefix: "elections/", MinTTL: ttl, Plain: opts.Plain})
		name, heirs := newName(), newName()
		var rec kv.Record
		eventually(t, func() (err error) {
			rec, err = s.Create(t.Context(), name, signed("v", time.Minute))
			return err
		})
		heir := create(t, s, heirs, signed("heir", time.Minute))
		_, err := s.Refresh(t.Context(), name, rec)
		require.NoError(t, err)
		rec, err = s.Swap(t.Context(), name, rec, heir)
		require.NoError(t, err)
		require.True(t, write(t, s, client, name, rec, "elections/"+newName(), "guarded"))
		require.NoError(t, s.Delete(t.Context(), name, rec))
		require.NoError(t, s.Delete(t.Context(), heirs, heir))
		for _, err := range s.Watch(t.Context(), name) {
			require.ErrorIs(t, err, kv.ErrVacant)
			break
		}
	})
}

// A policy for the old lock's key alone is what a migration may find.
func TestAPlainValueNeedsItsCompanionsKeyToo(t *testing.T) {
	addr := testenv.StartConsulWithACL(t).Addr()
	root, _ := dialCounted(t, addr, &api.Config{Token: testenv.ConsulManagementToken})
	eventually(t, func() error {
		_, err := root.Agent().Self()
		return err
	})
	name := newName()
	for _, rules := range []string{"", `key "` + companion(name) + `" { policy = "read" } `} {
		client, _ := as(t, root, addr, rules+`key "`+name+`" { policy = "write" } session_prefix "" { policy = "write" }`)
		s := consulkv.New(client, plain)
		var err error
		eventually(t, func() error { // until the servers know the policy
			_, err = s.Create(t.Context(), name, signed("v", time.Minute))
			if err != nil && strings.Contains(err.Error(), "ermission denied") {
				return nil
			}
			return fmt.Errorf("want a denial, not %w", err)
		})
		unknown(t, err)
		if rules == "" {
			require.ErrorContains(t, err, companion(name))
		}
		require.Zero(t, sessions(t, root, name))
	}
}
