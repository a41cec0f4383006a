//go:build unix

package testenv

import (
	"context"
	"errors"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLeaderIsARunningNodeThatAMajorityNames(t *testing.T) {
	const a, b, c, none = "a", "b", "c", ""
	for _, test := range []struct {
		name   string
		named  [3]string // by each of the nodes a, b, c; none is no answer
		paused bool      // whether a is
		want   string
	}{
		{name: "all name one", named: [3]string{b, b, b}, want: b},
		{name: "an old leader still names itself", named: [3]string{a, b, b}, want: b},
		{name: "an old leader alone names itself", named: [3]string{a, none, none}},
		{name: "all differ", named: [3]string{a, b, c}},
		{name: "one is silent", named: [3]string{none, c, c}, want: c},
		{name: "the paused one is still named", named: [3]string{a, a, a}, paused: true},
		{name: "none answers", named: [3]string{none, none, none}},
	} {
		t.Run(test.name, func(t *testing.T) {
			nodes := make([]*Server, 3)
			said := make(map[*Server]view)
			for i, self := range []string{a, b, c} {
				nodes[i] = &Server{name: self, cmd: new(exec.Cmd), paused: test.paused && self == a}
				said[nodes[i]] = view{self: self, leader: test.named[i]}
			}
			cluster := &Cluster{Nodes: nodes, view: func(_ context.Context, s *Server) (view, error) {
				if said[s].leader == none {
					return view{}, errors.New("no answer")
				}
				return said[s], nil
			}}
			leader, err := cluster.leader(t.Context())
			if test.want == none {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, leader.name)
		})
	}
}
