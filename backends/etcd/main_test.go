package etcdkv_test

import (
	"os"
	"testing"
	"time"

	etcdkv "github.com/electkv/election/backends/etcd"
	"github.com/electkv/election/internal/testenv"
)

func TestMain(m *testing.M) {
	testenv.Parallel(8)
	etcdkv.WaitAside(9 * time.Second) // a busy machine may need more than a second to grant a lease
	os.Exit(m.Run())
}
