//go:build unix

package testenv

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"
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

// StartEtcdCluster starts an etcd cluster of three nodes of the test's own.
func StartEtcdCluster(t testing.TB) *Cluster {
	t.Helper()
	return startCluster(t, newEtcdNodes, etcdView)
}

// StartConsulCluster starts a Consul cluster of three servers of the test's own.
func StartConsulCluster(t testing.TB) *Cluster {
	t.Helper()
	return startCluster(t, newConsulNodes, consulView)
}

func startCluster(t testing.TB, build func(int) ([]*Server, error), look func(context.Context, *Server) (view, error)) *Cluster {
	t.Helper()
	nodes, err := build(3)
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	c := &Cluster{Nodes: nodes, t: t, view: look}
	alive := make([]*os.File, len(nodes))
	for i, s := range nodes {
		s.cluster = c
		s.own(t)
		alive[i], err = s.launch()
		s.must(err)
		defer alive[i].Close()
	}
	for i, s := range nodes {
		s.must(s.await(alive[i]))
	}
	return c
}

// Addrs returns the nodes' addresses for clients, each as host:port.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.Nodes))
	for i, s := range c.Nodes {
		addrs[i] = s.Addr()
	}
	return addrs
}

// Leader returns the node that leads: one that runs, and that a majority of all
// nodes takes for the leader. It waits for one, and fails the test if none
// comes.
func (c *Cluster) Leader() *Server {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for {
		s, err := c.leader(ctx)
		if err == nil {
			return s
		}
		if ctx.Err() != nil {
			c.t.Fatalf("testenv: no leader after %v: %v", startTimeout, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// leader asks all nodes once.
func (c *Cluster) leader(ctx context.Context) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
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
