package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatTheEngineKeepsOfTheNetworkIsNoFailure(t *testing.T) {
	const active = `echo "Error response from daemon: error while removing network: network election_default id 4f9c has active endpoints" >&2; exit 1`
	for _, c := range []struct {
		name           string
		ps             string // prints the containers that are left
		connected      string // prints those that the network has
		container      string // succeeds if there is such a container
		remove         string
		err, says, did string
	}{
		{name: "a container is left", ps: "echo 1f3a", err: "docker compose .*: exit status 1"},
		{name: "nothing is connected any more", remove: "exit 0", did: "remove"},
		{name: "a container is gone, but not from the network", connected: "echo election_etcd_1", container: "exit 1", remove: "exit 0", did: "disconnect --force election_default election_etcd_1 remove"},
		{name: "the engine is wrong", remove: active, says: "the engine keeps the network election_default", did: "remove"},
		{name: "somebody else uses it", connected: "echo theirs", container: "exit 0", err: "the container theirs is connected to the network election_default: stop it, or disconnect it"},
		{name: "the engine fails", remove: "echo no space left >&2; exit 1", err: "no space left", did: "remove"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fakeDocker(t, `did=${0%/*}/did; case "$1 $2" in
				"compose "*) exit 1 ;;
				"ps "*) `+c.ps+`;;
				"network inspect") `+c.connected+` ;;
				"container inspect") `+c.container+` ;;
				"network disconnect") shift 1; printf '%s ' "$*" >>"$did" ;;
				"network rm") printf remove >>"$did"; `+c.remove+` ;;
				*) echo "called $*" >&2; exit 2 ;;
			esac`)
			var log bytes.Buffer
			p := &project{compose: []string{"docker", "compose"}, log: &log}
			err := p.down(t.Context())
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.Regexp(t, c.err, err.Error())
			}
			require.Contains(t, log.String(), c.says)
			did, err := os.ReadFile(filepath.Join(os.Getenv("PATH"), "did"))
			if c.did == "" {
				require.ErrorIs(t, err, os.ErrNotExist)
			} else {
				require.NoError(t, err)
				require.Equal(t, c.did, string(did))
			}
		})
	}
}
