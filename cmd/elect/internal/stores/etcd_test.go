package stores_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/electkv/election/cmd/elect/internal/stores"
	"github.com/electkv/election/internal/testenv"
)

// A candidate's user needs no more than its prefix, and that is no fault of the store.
func TestWhatEtcdTellsTheRoleRootOnlyIsNoFault(t *testing.T) {
	addr := testenv.StartEtcd(t).Addr()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, Logger: zap.NewNop()})
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	do := func(_ any, err error) { t.Helper(); require.NoError(t, err) }
	ctx := t.Context()
	do(client.UserAdd(ctx, "root", "root's own"))
	do(client.UserGrantRole(ctx, "root", "root"))
	do(client.UserAdd(ctx, "candidate", "secret"))
	do(client.RoleAdd(ctx, "elections"))
	do(client.RoleGrantPermission(ctx, "elections", "jobs/", clientv3.GetPrefixRangeEnd("jobs/"), clientv3.PermissionType(clientv3.PermReadWrite)))
	do(client.UserGrantRole(ctx, "candidate", "elections"))
	do(client.AuthEnable(ctx))

	for user, tells := range map[*url.Userinfo]bool{url.UserPassword("candidate", "secret"): false, url.UserPassword("root", "root's own"): true} {
		store := open(t, (&url.URL{Scheme: "etcd", User: user, Host: addr, Path: "/jobs"}).String())
		for _, f := range store.Examine(ctx, time.Minute) {
			require.NotContains(t, f.Found, "permission denied")
			require.NotEqual(t, stores.Fail, f.Level, "%v", f)
			if strings.HasPrefix(f.Subject, "endpoint") {
				require.Equal(t, tells, strings.HasPrefix(f.Found, "etcd 3."), f.Found)
			}
		}
	}
}
