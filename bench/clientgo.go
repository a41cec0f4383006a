package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

func clientGoPeers() []contender {
	const how = "LeaseDuration, RenewDeadline and RetryPeriod as 15 : 10 : 2, its defaults; ReleaseOnCancel; the Lease is a key"
	return []contender{
		{Name: "client-go", Store: inEtcd, Kind: peer, How: how + " of etcd, in place of an API server", open: openClientGoEtcd},
		{Name: "client-go", Store: inMemory, Kind: peer, How: how + " in memory, in place of an API server", open: openClientGoMemory},
	}
}

// A leaseTable keeps what an API server keeps of Leases: a text and its version.
type leaseTable interface {
	get(ctx context.Context, key string) (text []byte, version int64, _ error) // version 0 if there is none
	// put writes if the version is still the one given, and returns the new one, or
	// 0 if it is not.
	put(ctx context.Context, key string, text []byte, version int64) (int64, error)
	close()
}

type clientGoFamily struct {
	table leaseTable
	ttl   time.Duration
}

func openClientGoEtcd(seat seat) (family, error) {
	client, err := etcdClient(seat.Addr)
	silenceKlog()
	return clientGoFamily{etcdLeases{client}, seat.TTL}, err
}

func openClientGoMemory(seat seat) (family, error) {
	silenceKlog()
	return clientGoFamily{&memoryLeases{rows: make(map[string]leaseRow)}, seat.TTL}, nil
}

func silenceKlog() { klog.SetLogger(logr.Discard()) }

func (f clientGoFamily) close() { f.table.close() }

func (f clientGoFamily) candidate(place place) (candidate, error) {
	return clientGoCandidate{f, place}, nil
}

type clientGoCandidate struct {
	family clientGoFamily
	place  place
}

func (c clientGoCandidate) acquire(ctx context.Context) (*held, error) {
	started := make(chan context.Context, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            &leaseLock{table: c.family.table, key: c.place.Election, id: c.place.id()},
		LeaseDuration:   c.family.ttl,
		RenewDeadline:   c.family.ttl * 10 / 15,
		RetryPeriod:     c.family.ttl * 2 / 15,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { started <- ctx },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return nil, err
	}
	run, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		elector.Run(run)
	}()
	select {
	case leading := <-started:
		return &held{lost: leading.Done(), release: func(context.Context) error {
			stop()
			<-done
			return nil
		}}, nil
	case <-ctx.Done():
		stop()
		<-done
		return nil, context.Cause(ctx)
	}
}

// A leaseLock is a resourcelock.Interface over a leaseTable.
type leaseLock struct {
	table   leaseTable
	key, id string
	version int64
}

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

func (l *leaseLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	text, version, err := l.table.get(ctx, l.key)
	if err != nil {
		return nil, nil, err
	}
	if version == 0 {
		return nil, nil, apierrors.NewNotFound(leases, l.key)
	}
	l.version = version
	var record resourcelock.LeaderElectionRecord
	err = json.NewDecoder(bytes.NewReader(text)).Decode(&record)
	return &record, text, err
}

func (l *leaseLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.version = 0
	return l.Update(ctx, record)
}

func (l *leaseLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	version, err := l.table.put(ctx, l.key, text, l.version)
	if err != nil {
		return err
	}
	if version == 0 {
		return apierrors.NewConflict(leases, l.key, fmt.Errorf("version %d is not the newest", l.version))
	}
	l.version = version
	return nil
}

func (l *leaseLock) RecordEvent(string) {}

func (l *leaseLock) Identity() string { return l.id }

func (l *leaseLock) Describe() string { return l.key }

var (
	_ resourcelock.Interface = (*leaseLock)(nil)
)

// etcdLeases keeps Leases in etcd, as the API server does.
type etcdLeases struct{ client *clientv3.Client }

func (s etcdLeases) close() { s.client.Close() }

func (s etcdLeases) get(ctx context.Context, key string) ([]byte, int64, error) {
	resp, err := s.client.Get(ctx, key)
	if err != nil || len(resp.Kvs) == 0 {
		return nil, 0, err
	}
	return resp.Kvs[0].Value, resp.Kvs[0].ModRevision, nil
}

func (s etcdLeases) put(ctx context.Context, key string, text []byte, version int64) (int64, error) {
	resp, err := s.client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(key), "=", version)).
		Then(clientv3.OpPut(key, string(text))).Commit()
	if err != nil || !resp.Succeeded {
		return 0, err
	}
	return resp.Header.Revision, nil
}

// memoryLeases keeps Leases in memory.
type memoryLeases struct {
	mu   sync.Mutex
	rows map[string]leaseRow
}

type leaseRow struct {
	text    []byte
	version int64
}

func (s *memoryLeases) close() {}

func (s *memoryLeases) get(_ context.Context, key string) ([]byte, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.rows[key]
	return row.text, row.version, nil
}

func (s *memoryLeases) put(_ context.Context, key string, text []byte, version int64) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rows[key].version != version {
		return 0, nil
	}
	s.rows[key] = leaseRow{text, version + 1}
	return version + 1, nil
}
