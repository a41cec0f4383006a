//go:build unix

package testenv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// RedisPrimaryName is what sentinels call the primary that they watch.
const RedisPrimaryName = "main"

// A RedisSentinel is a Redis primary with a replica, and sentinels that make
// the replica the primary if that fails. They take it for failed once it has
// not answered for a second.
//
// The replication is asynchronous: what the primary has acknowledged may be
// lost with it. CutReplication makes sure that it is. Both nodes and the
// sentinels remember their roles across restarts, as they do in production.
type RedisSentinel struct {
	// Nodes are the two; the first begins as the primary.
	Nodes []*Server
	// Sentinels are each paused, killed and restarted by itself.
	Sentinels []*Server

	t testing.TB
}

// StartRedisSentinel starts a primary, a replica and as many sentinels, of the
// test's own, and waits until the replica is in step (see AwaitInStep). A
// majority of the sentinels decides. The args are settings of both nodes, as
// for [StartRedis]; the user "default" must need no password.
func StartRedisSentinel(t testing.TB, sentinels int, args ...string) *RedisSentinel {
	t.Helper()
	r := &RedisSentinel{t: t}
	for range 2 {
		s := startOwn(t, func() (*Server, error) { return newRemembering(r.Nodes, args) })
		r.Nodes = append(r.Nodes, s)
	}
	await(t, "the replica", func(ctx context.Context) error { return inStep(ctx, r.Nodes[0], r.Nodes[1]) })
	for range sentinels {
		s, err := newSentinel(r.Nodes[0], sentinels/2+1)
		if err != nil {
			t.Fatalf("testenv: %v", err)
		}
		r.Sentinels = append(r.Sentinels, s)
	}
	startAll(t, r.Sentinels)
	for _, s := range r.Sentinels {
		s.must(s.hasten())
	}
	r.AwaitInStep()
	return r
}

// newRemembering makes a Redis that keeps its settings in a file, where it
// writes down whose replica it is; at first it is the one of the first of the
// nodes, if there is one.
func newRemembering(nodes []*Server, args []string) (*Server, error) {
	for _, s := range nodes {
		host, port, err := net.SplitHostPort(s.Addr())
		if err != nil {
			return nil, err
		}
		args = append([]string{"--replicaof", host, port}, args...)
	}
	s, err := newReplicating(args...)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(s.dir, "redis.conf")
	if err := os.WriteFile(file, []byte(configText(s.args)), 0o600); err != nil {
		return nil, err
	}
	s.args = []string{file}
	return s, nil
}

// configText turns arguments into lines of a configuration file, as Redis does
// with its command line.
func configText(args []string) string {
	var b strings.Builder
	for _, arg := range args {
		if name, ok := strings.CutPrefix(arg, "--"); ok {
			b.WriteString("\n" + name)
		} else {
			b.WriteString(" " + strconv.Quote(arg))
		}
	}
	return b.String() + "\n"
}

// newSentinel makes a sentinel that watches the primary.
func newSentinel(primary *Server, quorum int) (*Server, error) {
	s, err := newRedis()
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(primary.Addr())
	if err != nil {
		return nil, err
	}
	file := filepath.Join(s.dir, "sentinel.conf")
	text := configText([]string{
		"--bind", "127.0.0.1", "--protected-mode", "no", "--port", strconv.Itoa(s.port.number), "--dir", s.dataDir(),
		"--sentinel", "monitor", RedisPrimaryName, host, port, strconv.Itoa(quorum),
		"--sentinel", "down-after-milliseconds", RedisPrimaryName, "1000",
		"--sentinel", "failover-timeout", RedisPrimaryName, "5000",
	})
	s.name, s.args = "sentinel", []string{file, "--sentinel"}
	return s, os.WriteFile(file, []byte(text), 0o600)
}

// hasten makes a sentinel look at its nodes, and speak of itself, more often, as
// long as it runs. Nor does one that stood still for two seconds, on a busy machine, do nothing
// for half a minute then ("tilt").
func (s *Server) hasten() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	_, err := s.ask(ctx, "sentinel", "debug", "info-period", "1000", "publish-period", "500", "tilt-trigger", "60000")
	return err
}

// Patience sets how long a primary may be silent before the sentinels replace it: longer where
// a busy machine is not to have that happen unasked.
func (r *RedisSentinel) Patience(d time.Duration) {
	r.t.Helper()
	for _, s := range r.Sentinels {
		await(r.t, "a sentinel that takes a setting", func(ctx context.Context) error {
			_, err := s.ask(ctx, "sentinel", "set", RedisPrimaryName, "down-after-milliseconds", strconv.FormatInt(d.Milliseconds(), 10))
			return err
		})
	}
}

// SentinelAddrs returns the sentinels' addresses, each as host:port.
func (r *RedisSentinel) SentinelAddrs() []string { return addrs(r.Sentinels) }

// Primary returns the node that is the primary: one that runs, says so, and
// that a majority of the sentinels names. It waits for one, and fails the test
// if none comes. A primary that has just been killed or paused is waited for to
// be replaced.
func (r *RedisSentinel) Primary() *Server {
	r.t.Helper()
	var primary *Server
	await(r.t, "a primary", func(ctx context.Context) (err error) {
		primary, err = r.primary(ctx)
		return err
	})
	return primary
}

// primary asks once.
func (r *RedisSentinel) primary(ctx context.Context) (*Server, error) {
	votes := make(map[string]int)
	var last error
	for _, s := range r.Sentinels {
		if !s.running() {
			continue
		}
		reply, err := s.ask(ctx, "sentinel", "get-master-addr-by-name", RedisPrimaryName)
		if addr := list(reply); len(addr) == 2 {
			votes[net.JoinHostPort(fmt.Sprint(addr[0]), fmt.Sprint(addr[1]))]++
		} else if err == nil {
			err = fmt.Errorf("a sentinel knows no primary %s", RedisPrimaryName)
		}
		last = errors.Join(last, err)
	}
	for _, s := range r.Nodes {
		if !s.running() || 2*votes[s.Addr()] <= len(r.Sentinels) {
			continue
		}
		info, err := s.replication(ctx)
		if err == nil && info["role"] != "master" {
			err = fmt.Errorf("%s is still a %s", s.Addr(), info["role"])
		}
		return s, err
	}
	return nil, fmt.Errorf("the sentinels name %v (last error: %w)", votes, last)
}

// Replica returns the node that is not the primary.
func (r *RedisSentinel) Replica() *Server {
	r.t.Helper()
	return r.Nodes[r.other(r.Primary())]
}

func (r *RedisSentinel) other(primary *Server) int {
	if primary == r.Nodes[0] {
		return 1
	}
	return 0
}

// AwaitInStep waits until the replica has everything that the primary has
// acknowledged, and every sentinel that runs knows it, the other sentinels, and
// nothing that would keep it from making the replica the primary.
func (r *RedisSentinel) AwaitInStep() {
	r.t.Helper()
	await(r.t, "a replica that is in step", func(ctx context.Context) error {
		primary, err := r.primary(ctx)
		if err != nil {
			return err
		}
		replica := r.Nodes[r.other(primary)]
		if err := inStep(ctx, primary, replica); err != nil {
			return err
		}
		for _, s := range r.Sentinels {
			if !s.running() {
				continue
			}
			if err := r.known(ctx, s, primary, replica); err != nil {
				return err
			}
		}
		return nil
	})
}

// known succeeds if a sentinel has seen all the others well.
func (r *RedisSentinel) known(ctx context.Context, sentinel, primary, replica *Server) error {
	reply, err := sentinel.ask(ctx, "sentinel", "master", RedisPrimaryName)
	if err != nil {
		return err
	}
	main := fields(reply)
	if main["flags"] != "master" || net.JoinHostPort(fmt.Sprint(main["ip"]), fmt.Sprint(main["port"])) != primary.Addr() {
		return fmt.Errorf("a sentinel has the primary %s:%s: %s", main["ip"], main["port"], main["flags"])
	}
	if main["num-other-sentinels"] != strconv.Itoa(len(r.Sentinels)-1) {
		return fmt.Errorf("a sentinel knows %s others", main["num-other-sentinels"])
	}
	if reply, err = sentinel.ask(ctx, "sentinel", "replicas", RedisPrimaryName); err != nil {
		return err
	}
	for _, one := range list(reply) {
		about := fields(one)
		if about["name"] == replica.Addr() && about["flags"] == "slave" && about["master-link-status"] == "ok" {
			return nil
		}
	}
	return fmt.Errorf("a sentinel has the replicas %v", reply)
}

// CutReplication keeps everything that is written from now on from the replica,
// as if the network between primary and replica were cut; the primary goes on
// acknowledging writes. It returns when the replica's link is down. Sentinels do
// not promote a replica that has been cut off for more than about ten seconds.
func (r *RedisSentinel) CutReplication() {
	r.t.Helper()
	cutReplication(r.Nodes)
}

// HealReplication ends the cut, on the nodes that run.
func (r *RedisSentinel) HealReplication() {
	r.t.Helper()
	healReplication(r.Nodes)
}
