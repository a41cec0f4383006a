//go:build unix

package testenv

import (
	"context"
	"fmt"
	"os"
	"testing"
)

// A Cluster is three nodes that replicate one store.
type Cluster struct {
	// Nodes are the three, in no particular order. Each is paused, killed and
	// restarted by itself.
	Nodes []*Server

	t    testing.TB
	view func(context.Context, *Server) (view, error)
}

// A view is what a node says about itself and the leader.
type view struct{ self, leader string }

// StartEtcdCluster starts an etcd cluster of three nodes of the test's own. The
// args are flags of each node, as for [StartEtcd].
func StartEtcdCluster(t testing.TB, args ...string) *Cluster {
	t.Helper()
	nodes, err := newEtcdNodes(3, args...)
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	return startCluster(t, nodes, etcdView)
}

// StartConsulCluster starts a Consul cluster of three servers of the test's own.
// The settings are those of each server, as for [StartConsul].
func StartConsulCluster(t testing.TB, settings ...map[string]any) *Cluster {
	t.Helper()
	nodes, err := newConsulNodes(3, settings...)
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	return startCluster(t, nodes, consulView)
}

func startCluster(t testing.TB, nodes []*Server, look func(context.Context, *Server) (view, error)) *Cluster {
	t.Helper()
	c := &Cluster{Nodes: nodes, t: t, view: look}
	for _, s := range nodes {
		s.cluster = c
	}
	startAll(t, nodes)
	return c
}

// startAll starts servers of the test's own that need each other to be healthy.
func startAll(t testing.TB, servers []*Server) {
	t.Helper()
	alive := make([]*os.File, len(servers))
	for i, s := range servers {
		s.own(t)
		var err error
		alive[i], err = s.launch()
		s.must(err)
		defer alive[i].Close()
	}
	for i, s := range servers {
		s.must(s.await(alive[i]))
	}
}

// Addrs returns the nodes' addresses for clients, each as host:port.
func (c *Cluster) Addrs() []string {
	return addrs(c.Nodes)
}

func addrs(servers []*Server) []string {
	list := make([]string, len(servers))
	for i, s := range servers {
		list[i] = s.Addr()
	}
	return list
}

// Leader returns the node that leads: one that runs, and that a majority of all
// nodes takes for the leader. It waits for one, and fails the test if none
// comes.
func (c *Cluster) Leader() *Server {
	c.t.Helper()
	var leader *Server
	await(c.t, "a leader", func(ctx context.Context) (err error) {
		leader, err = c.leader(ctx)
		return err
	})
	return leader
}

// leader asks all nodes once.
func (c *Cluster) leader(ctx context.Context) (*Server, error) {
	nodes := make(map[string]*Server)
	votes := make(map[string]int)
	var last error
	for _, s := range c.Nodes {
		if !s.running() {
			continue
		}
		v, err := c.view(ctx, s)
		if err != nil {
			last = err
			continue
		}
		nodes[v.self] = s
		votes[v.leader]++
	}
	for id, n := range votes {
		if s := nodes[id]; s != nil && 2*n > len(c.Nodes) {
			return s, nil
		}
	}
	return nil, fmt.Errorf("%d of %d nodes answer and do not agree (last error: %w)", len(nodes), len(c.Nodes), last)
}

// hasMajority reports whether enough nodes run to serve.
func (c *Cluster) hasMajority() bool {
	n := 0
	for _, s := range c.Nodes {
		if s.running() {
			n++
		}
	}
	return 2*n > len(c.Nodes)
}
