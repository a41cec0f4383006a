//go:build unix

package testenv_test

import (
	"testing"

	"github.com/electkv/election/internal/testenv"
)

func TestSmoke(t *testing.T) {
	t.Log(testenv.Etcd(t), testenv.Consul(t), testenv.Redis(t))
	c := testenv.StartEtcdCluster(t)
	t.Log(c.Addrs(), c.Leader().Addr())
	d := testenv.StartConsulCluster(t)
	t.Log(d.Addrs(), d.Leader().Addr())
	p := testenv.NewProxy(t, testenv.Redis(t))
	p.Cut()
	p.Heal()
}
