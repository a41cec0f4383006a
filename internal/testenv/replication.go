//go:build unix

package testenv

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
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
	onRunning(nodes, "cut the replication", func(ctx context.Context, client *redis.Client) error {
		if err := client.Do(ctx, "acl", "setuser", replicator, "off").Err(); err != nil {
			return err
		}
		return client.Do(ctx, "client", "kill", "user", replicator).Err()
	})
	onRunning(nodes, "the end of the replication", func(ctx context.Context, client *redis.Client) error {
		info, err := replication(ctx, client)
		if err == nil && info["role"] == "slave" && info["master_link_status"] != "down" {
			err = errors.New("the replica's link is " + info["master_link_status"])
		}
		return err
	})
}

// healReplication lets replicas log in again.
func healReplication(nodes []*Server) {
	onRunning(nodes, "heal the replication", func(ctx context.Context, client *redis.Client) error {
		return client.Do(ctx, "acl", "setuser", replicator, "on").Err()
	})
}

// onRunning waits until do succeeds on each of the nodes that run.
func onRunning(nodes []*Server, what string, do func(context.Context, *redis.Client) error) {
	for _, s := range nodes {
		if s.running() {
			await(s.t, what, func(ctx context.Context) error {
				return s.redis(func(client *redis.Client) error { return do(ctx, client) })
			})
		}
	}
}

// inStep succeeds once the replica has all that the primary has written.
func inStep(ctx context.Context, primary, replica *Server) error {
	var want, has int
	if err := primary.redis(func(client *redis.Client) error {
		info, err := replication(ctx, client)
		if err != nil {
			return err
		}
		want, err = strconv.Atoi(info["master_repl_offset"])
		return err
	}); err != nil {
		return err
	}
	return replica.redis(func(client *redis.Client) error {
		info, err := replication(ctx, client)
		if err != nil {
			return err
		}
		if info["role"] != "slave" || info["master_link_status"] != "up" {
			return fmt.Errorf("the replica is a %s, its link %s", info["role"], info["master_link_status"])
		}
		if has, err = strconv.Atoi(info["slave_repl_offset"]); err == nil && has < want {
			err = fmt.Errorf("the replica has %d of %d bytes", has, want)
		}
		return err
	})
}

// replication reads what a node says about it.
func replication(ctx context.Context, client *redis.Client) (map[string]string, error) {
	text, err := client.Info(ctx, "replication").Result()
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

// redis calls do with a client of the server that asks once.
func (s *Server) redis(do func(*redis.Client) error) error {
	client := redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1, ContextTimeoutEnabled: true})
	defer client.Close()
	return do(client)
}
