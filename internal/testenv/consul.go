//go:build unix

package testenv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/electkv/election/internal/testenv/install"
)

// A setting is part of a Consul agent's configuration, by its names in JSON.
type setting = map[string]any

func newConsul(settings ...setting) (*Server, error) {
	nodes, err := newConsulNodes(1, settings...)
	if err != nil {
		return nil, err
	}
	return nodes[0], nil
}

// newConsulNodes makes the n servers of a cluster. The settings take the place
// of testenv's own.
func newConsulNodes(n int, settings ...setting) ([]*Server, error) {
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
		all := consulSettings(i, s, join)
		for _, more := range settings {
			maps.Copy(all, more)
		}
		text, err := json.Marshal(all)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(config, text, 0o600); err != nil {
			return nil, err
		}
		s.args = []string{"agent", "-config-file", config}
	}
	return nodes, nil
}

// consulSettings are those of server i of the ones that join.
func consulSettings(i int, s *Server, join []string) setting {
	return setting{
		"server":           true,
		"bootstrap_expect": len(join),
		"retry_join":       join,
		"retry_interval":   "1s",
		"node_name":        fmt.Sprintf("n%d", i),
		"data_dir":         s.dataDir(),
		"bind_addr":        "127.0.0.1",
		"client_addr":      "127.0.0.1",
		"ports": setting{
			"http": s.port.number, "server": s.more[0].number, "serf_lan": s.more[1].number,
			"serf_wan": -1, "dns": -1, "grpc": -1, "grpc_tls": -1,
		},
		"session_ttl_min":      "1s",
		"performance":          setting{"raft_multiplier": 1},
		"limits":               setting{"http_max_conns_per_client": 2000}, // each watch holds one
		"leave_on_terminate":   false,
		"disable_update_check": true,
		"connect":              setting{"enabled": false},
		"ui_config":            setting{"enabled": false},
	}
}

// consulLed succeeds once the server has a leader and answers a consistent read.
func consulLed(ctx context.Context, addr string) error {
	var sessions []any
	return getJSON(ctx, "http://"+addr+"/v1/session/list?consistent", &sessions)
}

// consulHealthy succeeds once the server has a leader that has registered it: before
// that it can make no sessions.
func consulHealthy(ctx context.Context, addr string) error {
	if err := consulLed(ctx, addr); err != nil {
		return err
	}
	var self struct{ Config struct{ NodeName string } }
	if err := getJSON(ctx, "http://"+addr+"/v1/agent/self", &self); err != nil {
		return err
	}
	var node *struct{}
	if err := getJSON(ctx, "http://"+addr+"/v1/catalog/node/"+self.Config.NodeName+"?consistent", &node); err != nil {
		return err
	}
	if node == nil {
		return fmt.Errorf("the leader has not registered %q yet", self.Config.NodeName)
	}
	return nil
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
