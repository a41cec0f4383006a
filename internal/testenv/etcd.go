//go:build unix

package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/electkv/election/internal/testenv/install"
)

func newEtcd(args ...string) (*Server, error) {
	nodes, err := newEtcdNodes(1, args...)
	if err != nil {
		return nil, err
	}
	return nodes[0], nil
}

// newEtcdNodes makes the n nodes of a cluster, each with args after its own.
func newEtcdNodes(n int, args ...string) ([]*Server, error) {
	path, err := install.Etcd.Path(context.Background(), os.Stderr)
	if err != nil {
		return nil, err
	}
	nodes := make([]*Server, n)
	members := make([]string, n)
	for i := range nodes {
		s, err := newServer("etcd", path, etcdHealthy)
		if err != nil {
			return nil, err
		}
		peer, err := takePort()
		if err != nil {
			return nil, err
		}
		s.more = []*port{peer}
		nodes[i] = s
		members[i] = fmt.Sprintf("n%d=http://%s", i, peer.addr())
	}
	for i, s := range nodes {
		client, peer := "http://"+s.Addr(), "http://"+s.more[0].addr()
		s.args = append([]string{
			"--name", fmt.Sprintf("n%d", i),
			"--data-dir", s.dataDir(),
			"--listen-client-urls", client,
			"--advertise-client-urls", client,
			"--listen-peer-urls", peer,
			"--initial-advertise-peer-urls", peer,
			"--initial-cluster", strings.Join(members, ","),
			"--heartbeat-interval", "100",
			"--election-timeout", "500",
			"--unsafe-no-fsync",
			"--log-outputs", "stderr",
		}, args...)
	}
	return nodes, nil
}

// etcdHealthy succeeds once the node has a leader and answers a linearizable
// read.
func etcdHealthy(ctx context.Context, addr string) error {
	var answer struct{ Health, Reason string }
	if err := getJSON(ctx, "http://"+addr+"/health", &answer); err != nil {
		return err
	}
	if answer.Health != "true" {
		return fmt.Errorf("etcd is unhealthy: %s", answer.Reason)
	}
	return nil
}

// etcdView asks a node who it is and whom it takes for the leader.
func etcdView(ctx context.Context, s *Server) (view, error) {
	var status struct {
		Header struct {
			Member string `json:"member_id"`
		}
		Leader string
	}
	if err := postJSON(ctx, "http://"+s.Addr()+"/v3/maintenance/status", "{}", &status); err != nil {
		return view{}, err
	}
	if status.Leader == "" {
		return view{}, errors.New("the node knows no leader")
	}
	return view{self: status.Header.Member, leader: status.Leader}, nil
}
