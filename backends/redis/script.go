package rediskv

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed record.lua
	recordLua string
	//go:embed observed.lua
	observedLua string
	//go:embed create.lua
	createLua string
	//go:embed swap.lua
	swapLua string
	//go:embed handover.lua
	handOverLua string
	//go:embed refresh.lua
	refreshLua string
	//go:embed batch.lua
	batchLua string
	//go:embed delete.lua
	deleteLua string
	//go:embed vacate.lua
	vacateLua string
	//go:embed look.lua
	lookLua string
	//go:embed eval.lua
	evalLua string
	//go:embed enrol.lua
	enrolLua string
	//go:embed strike.lua
	strikeLua string
	//go:embed page.lua
	pageLua string
	//go:embed members.lua
	membersLua string
	//go:embed claim.lua
	claimLua string
	//go:embed renew.lua
	renewLua string
	//go:embed remove.lua
	removeLua string
	//go:embed view.lua
	viewLua string
)

// Who judges when a record has expired: see record.lua.
const (
	byServer    = "local observed = false\n"
	byObservers = "local observed = true\n"
)

// A script is one atomic step of the server.
type script struct {
	source string
	sha    string
}

var (
	createScript   = newScript(byServer, recordLua, createLua)
	swapScript     = newScript(byServer, recordLua, swapLua)
	handOverScript = newScript(byServer, recordLua, handOverLua)
	refreshScript  = newScript(byServer, recordLua, refreshLua)
	batchScript    = newScript(batchLua)
	deleteScript   = newScript(byServer, recordLua, deleteLua)
	vacateScript   = newScript(byServer, recordLua, vacateLua, deleteLua)
	lookScript     = newScript(byServer, recordLua, lookLua)
	enrolScript    = newScript(byServer, recordLua, function("create", createLua), enrolLua)
	strikeScript   = newScript(byServer, recordLua, function("delete", deleteLua), strikeLua)
	pageScript     = newScript(pageLua)
	membersScript  = newScript(membersLua)

	claimScript  = newScript(byObservers, recordLua, observedLua, claimLua)
	renewScript  = newScript(byObservers, recordLua, observedLua, renewLua)
	removeScript = newScript(byObservers, recordLua, observedLua, removeLua)
	viewScript   = newScript(byObservers, recordLua, observedLua, viewLua)
)

// function makes a function of a script's source.
func function(name, source string) string {
	return "local function " + name + "()\n" + source + "end\n"
}

func newScript(parts ...string) script {
	source := strings.Join(parts, "")
	sum := sha1.Sum([]byte(source)) // what EVALSHA goes by
	return script{source: source, sha: hex.EncodeToString(sum[:])}
}

// run carries a script out, by its digest if the server knows it. A script that
// returns nil gives redis.Nil.
func (s *Store) run(ctx context.Context, sc script, keys []string, args ...any) (any, error) {
	reply, err := s.send(ctx, "evalsha", sc.sha, keys, args)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		return s.send(ctx, "eval", sc.source, keys, args)
	}
	return reply, err
}

func (s *Store) send(ctx context.Context, verb, body string, keys []string, args []any) (any, error) {
	words := []any{verb, body, len(keys)}
	for _, key := range keys {
		words = append(words, key)
	}
	cmd := redis.NewCmd(ctx, append(words, args...)...)
	cmd.SetFirstKeyPos(3)
	reply, err := await(ctx, func() (any, error) {
		if err := s.client.Process(ctx, once{cmd}); err != nil {
			return nil, err
		}
		return cmd.Result()
	})
	s.reorient(ctx, err)
	return reply, err
}

// reorient has a cluster's client ask who owns which slots when a node did not
// answer, or has lost sight of the others: another may have taken its place. The
// client does so by itself when a node redirects it, but not when a command that
// is sent once fails; then it would ask the same node for up to a minute.
func (s *Store) reorient(ctx context.Context, err error) {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok || err == nil || errors.Is(err, context.Canceled) {
		return
	}
	var answer redis.Error
	if !errors.As(err, &answer) || redis.HasErrorPrefix(err, "CLUSTERDOWN") {
		cluster.ReloadState(ctx) // soon; many calls are one
	}
}

// once is a command that the client sends once. By default it sends a command
// again when the reply is lost, and reports what became of the last attempt: a
// delete that was carried out would be reported as refused. Redirections in a
// cluster are followed all the same; a command that is redirected was not
// carried out.
type once struct{ *redis.Cmd }

// NoRetry is asked by the client before it sends a command again.
func (once) NoRetry() bool { return true }
