//go:build unix

package testenv_test

import (
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/electkv/election/internal/testenv"
)

func TestEtcdWithAuthServesItsUserUntilTheRoleIsRevoked(t *testing.T) {
	t.Parallel()
	server := testenv.StartEtcdWithAuth(t)
	as := func(user, password string) *clientv3.Client {
		client, err := clientv3.New(clientv3.Config{
			Endpoints: []string{server.Addr()}, Username: user, Password: password, Logger: zap.NewNop(),
		})
		require.NoError(t, err)
		t.Cleanup(func() { client.Close() })
		return client
	}
	require.ErrorContains(t, putEtcd(within(t), server.Addr(), "k", "v"), "user name is empty")
	root := as(testenv.EtcdRoot, testenv.EtcdRootPassword)
	user := as(testenv.EtcdUser, testenv.EtcdUserPassword)
	put := func() error {
		_, err := user.Put(within(t), "any key", "v")
		return err
	}
	require.NoError(t, put())

	_, err := root.UserRevokeRole(within(t), testenv.EtcdUser, testenv.EtcdRole)
	require.NoError(t, err)
	require.ErrorContains(t, put(), "permission denied")
	server.Restart()
	require.ErrorContains(t, put(), "permission denied")

	_, err = root.UserGrantRole(within(t), testenv.EtcdUser, testenv.EtcdRole)
	require.NoError(t, err)
	require.NoError(t, put())
}

func TestConsulWithACLServesATokenUntilItIsTakenAway(t *testing.T) {
	t.Parallel()
	server := testenv.StartConsulWithACL(t)
	as := func(token string) *api.Client {
		config := api.DefaultNonPooledConfig()
		config.Address, config.Token = server.Addr(), token
		client, err := api.NewClient(config)
		require.NoError(t, err)
		return client
	}
	require.ErrorContains(t, putConsul(within(t), server.Addr(), "k", "v"), "403")
	root := as(testenv.ConsulManagementToken).ACL()
	policy, _, err := root.PolicyCreate(&api.ACLPolicy{
		Name: "elections", Rules: `key_prefix "" { policy = "write" } session_prefix "" { policy = "write" }`,
	}, nil)
	require.NoError(t, err)
	token, _, err := root.TokenCreate(&api.ACLToken{Policies: []*api.ACLLink{{ID: policy.ID}}}, nil)
	require.NoError(t, err)
	user := as(token.SecretID)
	put := func() error {
		_, err := user.KV().Put(&api.KVPair{Key: "k", Value: []byte("v")}, new(api.WriteOptions).WithContext(within(t)))
		return err
	}
	require.NoError(t, put())

	policy.Rules = `key_prefix "" { policy = "read" }`
	_, _, err = root.PolicyUpdate(policy, nil)
	require.NoError(t, err)
	require.ErrorContains(t, put(), "403")

	server.Restart()
	require.ErrorContains(t, put(), "403")
	_, err = root.TokenDelete(token.AccessorID, nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, _, err := user.KV().Get("k", nil)
		return err != nil
	}, 10*time.Second, 10*time.Millisecond)
}
