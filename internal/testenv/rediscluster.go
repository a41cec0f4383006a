//go:build unix

package testenv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
)

// slots is how many slots a Redis Cluster divides its keys into.
const slots = 16384

// How long the nodes of a cluster wait for one that is silent, in milliseconds, before a replica
// takes its place, or the whole cluster refuses to serve. A machine may be busy for seconds.
const (
	failsOver = "3000"
	keepsOn   = "60000" // without replicas
)

// A RedisCluster is a Redis Cluster, each of whose primaries has an equal part
// of the keys. A replica takes its primary's place once the others have not
// heard of that for three seconds.
type RedisCluster struct {
	// Nodes are all; at first, the primaries come first, then their replicas,
	// in the same order.
	Nodes []*Server

	t testing.TB
}

// StartRedisCluster starts a Redis Cluster of the test's own, with so many
// replicas for each primary, and waits until every node knows all the others
// and the replicas are in step. A majority of the primaries must be there for a
// failover. The args are settings of each node, as for [StartRedis].
func StartRedisCluster(t testing.TB, primaries, replicas int, args ...string) *RedisCluster {
	t.Helper()
	r := &RedisCluster{t: t}
	silence := failsOver
	if replicas == 0 {
		silence = keepsOn
	}
	for range primaries * (1 + replicas) {
		s, err := newClusterRedis(silence, args)
		if err != nil {
			t.Fatalf("testenv: %v", err)
		}
		r.Nodes = append(r.Nodes, s)
	}
	startAll(t, r.Nodes)
	for i, s := range r.Nodes {
		await(t, "join a Redis Cluster", func(ctx context.Context) error { return r.join(ctx, i, primaries) })
		if i >= primaries {
			primary := r.Nodes[i%primaries]
			await(t, "a replica of a Redis Cluster", func(ctx context.Context) error { return follow(ctx, s, primary) })
		}
	}
	r.AwaitReady()
	return r
}

func newClusterRedis(silence string, args []string) (*Server, error) {
	bus, err := takePort()
	if err != nil {
		return nil, err
	}
	s, err := newReplicating(append([]string{
		"--cluster-enabled", "yes", "--cluster-node-timeout", silence, "--cluster-port", strconv.Itoa(bus.number),
	}, args...)...)
	if err == nil {
		s.more = []*port{bus}
	}
	return s, err
}

// join makes node i known to the first one, and gives each primary its part of
// the slots. It may be tried again, whichever of its answers was lost.
func (r *RedisCluster) join(ctx context.Context, i, primaries int) error {
	s := r.Nodes[i]
	host, port, err := net.SplitHostPort(s.Addr())
	if err != nil {
		return err
	}
	if i < primaries {
		first, last := i*slots/primaries, (i+1)*slots/primaries-1
		if err := makePrimary(ctx, s, i+1, first, last); err != nil {
			return err
		}
	}
	_, err = r.Nodes[0].ask(ctx, "cluster", "meet", host, port, strconv.Itoa(s.more[0].number))
	return err
}

// makePrimary gives a node that knows no other its slots, and then its epoch. Without
// epochs of their own primaries would have to agree on them first.
func makePrimary(ctx context.Context, s *Server, epoch, first, last int) error {
	info, err := s.askText(ctx, "cluster", "info")
	if err != nil || strings.Contains(info, fmt.Sprintf("cluster_my_epoch:%d\r\n", epoch)) {
		return err
	}
	if strings.Contains(info, "cluster_slots_assigned:0\r\n") {
		if _, err := s.ask(ctx, "cluster", "addslotsrange", strconv.Itoa(first), strconv.Itoa(last)); err != nil {
			return err
		}
	}
	_, err = s.ask(ctx, "cluster", "set-config-epoch", strconv.Itoa(epoch))
	return err
}

// follow makes a node the replica of a primary, which it must know already.
func follow(ctx context.Context, s, primary *Server) error {
	id, err := primary.askText(ctx, "cluster", "myid")
	if err != nil {
		return err
	}
	_, err = s.ask(ctx, "cluster", "replicate", id)
	return err
}

// AwaitReady waits until every node that runs serves, knows all the others and
// who owns what, and every replica that runs has all that its primary has
// acknowledged.
func (r *RedisCluster) AwaitReady() {
	r.t.Helper()
	want := fmt.Sprintf("cluster_known_nodes:%d\r\n", len(r.Nodes))
	onRunning(r.Nodes, "a Redis Cluster that is ready", func(ctx context.Context, s *Server) error {
		info, err := s.askText(ctx, "cluster", "info")
		if err == nil && (!strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, want)) {
			err = errors.New(info)
		}
		return err
	})
	await(r.t, "replicas that are in step", r.inStep)
}

// inStep succeeds once all nodes that run name the same owners, and their
// replicas are in step.
func (r *RedisCluster) inStep(ctx context.Context) error {
	named := 0
	for slot := int64(0); slot < slots; {
		owner, replicas, end, err := r.owner(ctx, slot)
		if err != nil {
			return err
		}
		for _, s := range replicas {
			if err := inStep(ctx, owner, s); err != nil {
				return err
			}
		}
		slot, named = end+1, named+1+len(replicas)
	}
	if running := len(r.running()); named < running {
		return fmt.Errorf("%d of %d nodes have a part", named, running)
	}
	return nil
}

// Addrs returns the nodes' addresses, each as host:port.
func (r *RedisCluster) Addrs() []string { return addrs(r.Nodes) }

// Owner returns the primary that owns the key: one that runs, and that all nodes
// that run name. It waits for one, and fails the test if none comes. An owner
// that has just been killed or paused is waited for to be replaced.
func (r *RedisCluster) Owner(key string) *Server {
	r.t.Helper()
	owner, _ := r.part(key)
	return owner
}

// Replicas returns the replicas, of those that run, of the key's owner.
func (r *RedisCluster) Replicas(key string) []*Server {
	r.t.Helper()
	_, replicas := r.part(key)
	return replicas
}

func (r *RedisCluster) part(key string) (owner *Server, replicas []*Server) {
	r.t.Helper()
	await(r.t, "the owner of "+key, func(ctx context.Context) error {
		running := r.running()
		if len(running) == 0 {
			return errors.New("no node runs")
		}
		reply, err := running[0].ask(ctx, "cluster", "keyslot", key)
		if err != nil {
			return err
		}
		slot, _ := reply.(int64)
		owner, replicas, _, err = r.owner(ctx, slot)
		return err
	})
	return owner, replicas
}

// owner asks all nodes that run once who owns a slot, and all up to end.
func (r *RedisCluster) owner(ctx context.Context, slot int64) (owner *Server, replicas []*Server, end int64, err error) {
	named := make(map[string]bool)
	for _, s := range r.running() {
		shards, err := s.ask(ctx, "cluster", "shards")
		if err != nil {
			return nil, nil, 0, err
		}
		nodes, last := shardOf(shards, slot)
		owner, replicas, end = nil, nil, last
		for _, n := range nodes {
			about := fields(n)
			addr := net.JoinHostPort(fmt.Sprint(about["ip"]), fmt.Sprint(about["port"]))
			node := r.runningAt(addr)
			switch {
			case about["role"] == "master":
				named[addr], owner = true, node
			case node != nil:
				replicas = append(replicas, node)
			}
		}
	}
	if owner == nil || len(named) != 1 {
		return nil, nil, 0, fmt.Errorf("the nodes name %v as the owner of slot %d", named, slot)
	}
	return owner, replicas, end, nil
}

// shardOf returns the nodes that have a slot, and all up to end, as a reply to
// CLUSTER SHARDS tells them.
func shardOf(shards any, slot int64) (nodes []any, end int64) {
	for _, shard := range list(shards) {
		about := fields(shard)
		parts := list(about["slots"])
		for i := 0; i+1 < len(parts); i += 2 {
			first, _ := parts[i].(int64)
			last, _ := parts[i+1].(int64)
			if first <= slot && slot <= last {
				return list(about["nodes"]), last
			}
		}
	}
	return nil, 0
}

// runningAt returns the node at an address, or nil if it does not run.
func (r *RedisCluster) runningAt(addr string) *Server {
	for _, s := range r.running() {
		if s.Addr() == addr {
			return s
		}
	}
	return nil
}

func (r *RedisCluster) running() []*Server {
	var list []*Server
	for _, s := range r.Nodes {
		if s.running() {
			list = append(list, s)
		}
	}
	return list
}

// CutReplication keeps everything that is written from now on from all
// replicas, as [RedisSentinel.CutReplication] does. Nodes do not take their
// primary's place after about half a minute without it.
func (r *RedisCluster) CutReplication() {
	r.t.Helper()
	cutReplication(r.Nodes)
}

// HealReplication ends the cut, on the nodes that run.
func (r *RedisCluster) HealReplication() {
	r.t.Helper()
	healReplication(r.Nodes)
}
