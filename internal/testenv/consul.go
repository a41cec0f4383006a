//go:build unix

package testenv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/electkv/election/internal/testenv/install"
)

func newConsul() (*Server, error) {
	nodes, err := newConsulNodes(1)
	if err != nil {
		return nil, err
	}
	return nodes[0], nil
}

// newConsulNodes makes the n servers of a cluster.
func newConsulNodes(n int) ([]*Server, error) {
	path, err := install.Consul.Path(context.Background(), os.Stderr)
	if err != nil {
		return nil, err
	}
	nodes := make([]*Server, n)
	join := make([]string, n)
	for i := range nodes {
		s, err := newServer("consul", path, consulHealthy)
		if err != nil {
			return nil, err
		}
		nodes[i] = s
		for range 2 {
			p, err := takePort()
			if err != nil {
				return nil, err
			}
			s.more = append(s.more, p)
		}
		join[i] = s.more[1].addr()
	}
	for i, s := range nodes {
		config := filepath.Join(s.dir, "consul.json")
		if err := writeConsulConfig(config, i, s, join); err != nil {
			return nil, err
		}
		s.args = []string{"agent", "-config-file", config}
	}
	return nodes, nil
}

func writeConsulConfig(file string, i int, s *Server, join []string) error {
	type object = map[string]any
	text, err := json.Marshal(object{
		"server":           true,
		"bootstrap_expect": len(join),
		"retry_join":       join,
		"retry_interval":   "1s",
		"node_name":        fmt.Sprintf("n%d", i),
		"data_dir":         s.dataDir(),
		"bind_addr":        "127.0.0.1",
		"client_addr":      "127.0.0.1",
		"ports": object{
			"http": s.port.number, "server": s.more[0].number, "serf_lan": s.more[1].number,
			"serf_wan": -1, "dns": -1, "grpc": -1, "grpc_tls": -1,
		},
		"session_ttl_min":      "1s",
		"performance":          object{"raft_multiplier": 1},
		"limits":               object{"http_max_conns_per_client": 2000}, // each watch holds one
		"leave_on_terminate":   false,
		"disable_update_check": true,
		"connect":              object{"enabled": false},
		"ui_config":            object{"enabled": false},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

// consulHealthy succeeds once the server has a leader and answers a consistent
// read.
func consulHealthy(ctx context.Context, addr string) error {
	var sessions []any
	return getJSON(ctx, "http://"+addr+"/v1/session/list?consistent", &sessions)
}

// consulView asks a server whom it takes for the leader. Servers go by the
// address of their server port.
func consulView(ctx context.Context, s *Server) (view, error) {
	var leader string
	if err := getJSON(ctx, "http://"+s.Addr()+"/v1/status/leader", &leader); err != nil {
		return view{}, err
	}
	if leader == "" {
		return view{}, errors.New("the server knows no leader")
	}
	return view{self: s.more[0].addr(), leader: leader}, nil
}
