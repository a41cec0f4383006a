// Package roster_test has rosters of many on real servers.
package roster_test

import (
	"crypto/rand"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/electkv/election"
	consulkv "github.com/electkv/election/backends/consul"
	etcdkv "github.com/electkv/election/backends/etcd"
	rediskv "github.com/electkv/election/backends/redis"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

const crowd = 10_000

// stores are servers of the test's own, with others' records in the roster: so many.
var stores = map[string]func(t *testing.T) (store kv.Store, foreign int){
	"etcd": func(t *testing.T) (kv.Store, int) {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{testenv.StartEtcd(t).Addr()}, Logger: zap.NewNop()})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, client.Close()) })
		return etcdkv.New(client, nil), 0
	},
	"Redis": func(t *testing.T) (kv.Store, int) {
		client := redis.NewClient(&redis.Options{Addr: testenv.StartRedis(t).Addr(), ContextTimeoutEnabled: true})
		t.Cleanup(func() { require.NoError(t, client.Close()) })
		return rediskv.New(client, nil), 0
	},
	"Consul": func(t *testing.T) (kv.Store, int) { // where it would take minutes to create all
		client, err := api.NewClient(&api.Config{Address: testenv.StartConsul(t).Addr()})
		require.NoError(t, err)
		const foreign, each = 9_600, 64
		for range foreign / each {
			var puts api.TxnOps
			for range each {
				puts = append(puts, &api.TxnOp{KV: &api.KVTxnOp{Verb: api.KVSet, Key: kv.MemberName("crowd", rand.Text()[:12]), Value: []byte("another program's")}})
			}
			ok, _, _, err := client.Txn().Txn(puts, nil)
			require.NoError(t, err)
			require.True(t, ok)
		}
		return consulkv.New(client, nil), foreign
	},
}

// join puts records of this library into the roster.
func join(t *testing.T, store kv.Store, many int) {
	const lanes = 50
	var all sync.WaitGroup
	defer all.Wait()
	for lane := range lanes {
		all.Go(func() {
			for i := lane; i < many; i += lanes {
				key := rand.Text()[:12] + "-1"
				_, err := store.Create(t.Context(), kv.MemberName("crowd", key), kv.Record{
					Signature: fmt.Sprintf("host-%d/%s", i, key), Value: "value", Note: "{}", TTL: time.Hour, Shared: true,
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
}

func TestARosterOfTenThousandIsListedByRealServers(t *testing.T) {
	testenv.Long(t)
	for kind, open := range stores {
		t.Run(kind, func(t *testing.T) {
			store, foreign := open(t)
			join(t, store, crowd-foreign)
			last, err := election.New(store, "crowd", &election.Options{ID: "last", TTL: time.Minute, Roster: true})
			require.NoError(t, err)
			term, err := last.Campaign(t.Context())
			require.NoError(t, err)
			var all []election.Member
			for members, err := range election.WatchMembers(t.Context(), store, "crowd") {
				require.NoError(t, err)
				// The leader is listed, without a number, also before it has entered.
				if all = members; len(all) == crowd+1 && all[0].Number > 0 {
					break
				}
			}
			began := time.Now()
			_, err = election.Members(t.Context(), store, "crowd")
			require.NoError(t, err)
			t.Logf("%d are read in %v", crowd, time.Since(began).Round(time.Millisecond))
			ids := map[string]bool{}
			for i, m := range all {
				require.Equal(t, i > crowd-foreign, m.Foreign)
				require.False(t, !m.Foreign && ids[m.ID])
				ids[m.ID] = true
				if i > 0 && !m.Foreign {
					require.Less(t, all[i-1].Number, m.Number)
				}
			}
			require.Equal(t, "last", all[crowd-foreign].ID)
			require.Equal(t, election.RoleLeader, all[crowd-foreign].Role)
			require.NoError(t, term.Resign(t.Context()))
		})
	}
}
