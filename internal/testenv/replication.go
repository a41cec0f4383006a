//go:build unix

package testenv

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// replicator is the user, and the password, as which a replica logs in at its
// primary.
const replicator = "replicator"

// newReplicating makes a Redis that may become a primary or a replica.
func newReplicating(args ...string) (*Server, error) {
	return newRedis(append([]string{
		"--user", replicator, "on", ">" + replicator, "+psync", "+replconf", "+ping",
		"--masteruser", replicator, "--masterauth", replicator,
		"--repl-diskless-sync-delay", "0",
	}, args...)...)
}

// cutReplication keeps every replica among the nodes from getting anything more
// of its primary: it is thrown out and cannot log in again. It returns when the
// links are down.
func cutReplication(nodes []*Server) {
	onRunning(nodes, "cut the replication", func(ctx context.Context, s *Server) error {
		if _, err := s.ask(ctx, "acl", "setuser", replicator, "off"); err != nil {
			return err
		}
		_, err := s.ask(ctx, "client", "kill", "user", replicator)
		return err
	})
	onRunning(nodes, "the end of the replication", func(ctx context.Context, s *Server) error {
		info, err := s.replication(ctx)
		if err == nil && info["role"] == "slave" && info["master_link_status"] != "down" {
			err = errors.New("the replica's link is " + info["master_link_status"])
		}
		return err
	})
}

// healReplication lets replicas log in again.
func healReplication(nodes []*Server) {
	onRunning(nodes, "heal the replication", func(ctx context.Context, s *Server) error {
		_, err := s.ask(ctx, "acl", "setuser", replicator, "on")
		return err
	})
}

// onRunning waits until do succeeds on each of the nodes that run.
func onRunning(nodes []*Server, what string, do func(context.Context, *Server) error) {
	for _, s := range nodes {
		if s.running() {
			await(s.t, what, func(ctx context.Context) error { return do(ctx, s) })
		}
	}
}

// inStep succeeds once the replica has all that the primary has written.
func inStep(ctx context.Context, primary, replica *Server) error {
	info, err := primary.replication(ctx)
	if err != nil {
		return err
	}
	want, err := strconv.Atoi(info["master_repl_offset"])
	if err != nil {
		return err
	}
	if info, err = replica.replication(ctx); err != nil {
		return err
	}
	if info["role"] != "slave" || info["master_link_status"] != "up" {
		return fmt.Errorf("the replica is a %s, its link %s", info["role"], info["master_link_status"])
	}
	has, err := strconv.Atoi(info["slave_repl_offset"])
	if err == nil && has < want {
		err = fmt.Errorf("the replica has %d of %d bytes", has, want)
	}
	return err
}

// replication reads what a node says about it.
func (s *Server) replication(ctx context.Context) (map[string]string, error) {
	text, err := s.askText(ctx, "info", "replication")
	if err != nil {
		return nil, err
	}
	info := make(map[string]string)
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		info[name] = value
	}
	return info, nil
}
