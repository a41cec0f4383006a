//go:build unix

package linear_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	etcdkv "github.com/electkv/election/backends/etcd"
	rediskv "github.com/electkv/election/backends/redis"
	"github.com/electkv/election/internal/linear"
	"github.com/electkv/election/internal/mistake"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// An unconditional store deletes a key without a look at what it holds.
type unconditional struct {
	kv.Store
	client *clientv3.Client
}

func (s *unconditional) Delete(ctx context.Context, name string, _ kv.Record) error {
	_, err := s.client.Delete(ctx, name)
	return err
}

func TestAnUnconditionalDeleteOnEtcdIsFound(t *testing.T) {
	t.Parallel() // it often waits
	server, recorder := testenv.StartEtcd(t), linear.NewRecorder()
	s := subject{name: "etcd-planted"}
	wires := newWires(t, server.Addr())
	s.open = func(client int) kv.Store {
		c := dialEtcd(t, wires[client])
		return recorder.Client(client, &unconditional{etcdkv.New(c, nil), c})
	}
	requireFound(t, recorder, s)
}

// A keen store takes the server's word that the key was given its TTL for proof
// that the record is still there.
type keen struct {
	kv.Store
	client redis.UniversalClient
}

func (s *keen) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	return rec, s.client.PExpire(ctx, name, rec.TTL).Err()
}

func TestARefreshOnRedisWithoutALookAtTheKeyIsFound(t *testing.T) {
	t.Parallel() // it often waits
	server, recorder := testenv.StartRedis(t), linear.NewRecorder()
	s := subject{name: "redis-planted"}
	wires := newWires(t, server.Addr())
	s.open = func(client int) kv.Store {
		c := dialRedis(t, wires[client], server.Addr())
		return recorder.Client(client, &keen{rediskv.New(c, nil), c})
	}
	requireFound(t, recorder, s)
}

// An eager store sends a write again that was not answered, and reports what
// became of the last one.
type eager struct{ kv.Store }

func (s *eager) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	return again(ctx, func(ctx context.Context) (kv.Record, error) { return s.Store.Create(ctx, name, rec) })
}

func (s *eager) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	return again(ctx, func(ctx context.Context) (kv.Record, error) { return s.Store.Swap(ctx, name, old, next) })
}

func (s *eager) Delete(ctx context.Context, name string, rec kv.Record) error {
	_, err := again(ctx, func(ctx context.Context) (kv.Record, error) {
		return kv.Record{}, s.Store.Delete(ctx, name, rec)
	})
	return err
}

func again(ctx context.Context, attempt func(context.Context) (kv.Record, error)) (kv.Record, error) {
	for {
		short, cancel := context.WithTimeout(ctx, timeout/10)
		rec, err := attempt(short)
		cancel()
		if err == nil || errors.Is(err, kv.ErrHeld) || errors.Is(err, kv.ErrStale) || ctx.Err() != nil {
			return rec, err
		}
	}
}

// This one shows only where a reply was lost and the next one was not.
func TestAWriteThatIsSentAgainIsFoundByTheFaults(t *testing.T) {
	t.Parallel() // it often waits
	server, recorder := testenv.StartRedis(t), linear.NewRecorder()
	wires := newWires(t, server.Addr())
	lost := wireFaults(wires)[2]
	require.Equal(t, "replies dropped", lost.name)
	lost.hold = timeout / 2 // so that the next attempt comes after it
	s := subject{name: "redis-eager", faults: []fault{lost}}
	s.open = func(client int) kv.Store {
		return recorder.Client(client, &eager{rediskv.New(dialRedis(t, wires[client], server.Addr()), nil)})
	}
	requireFound(t, recorder, s)
}

// requireFound fails the test unless the store is found to be broken, and the
// history broken still when it is read back.
func requireFound(t *testing.T, recorder *linear.Recorder, s subject) {
	t.Helper()
	tr := newTrial(t, max(s.ops, 3000), recorder, s)
	verdict := tr.run()
	t.Logf("%d of %d names", len(verdict.Names), verdict.Safes)
	if verdict.Result != linear.Broken {
		mistake.Missed(t, fmt.Sprintf("the history of %d names is %s", verdict.Safes, verdict.Result))
	}
	files, err := verdict.Save(t.TempDir())
	require.NoError(t, err)
	f, err := os.Open(files[0])
	require.NoError(t, err)
	defer f.Close()
	history, err := linear.Read(f)
	require.NoError(t, err)
	again, err := linear.Check(history, time.Minute)
	require.NoError(t, err)
	require.Equal(t, verdict.Names, again.Names)
}
