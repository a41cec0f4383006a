package main

import (
	"context"
	"errors"
	"log/slog"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/cmd/elect/internal/guard"
)

// A guard that is late is killed, also before it has started COMMAND. That says nothing of COMMAND.
func TestAGuardThatIsKilledWhenTheTermIsOverEndsNoCandidacy(t *testing.T) {
	killed := errors.New("the guard was killed")
	for name, c := range map[string]struct {
		end    guard.End
		lost   error
		once   bool
		status int // 0 if elect goes on
	}{
		"late, and COMMAND not started":              {end: guard.End{Err: killed}, lost: election.ErrLost},
		"late, and COMMAND killed":                   {end: guard.End{Err: killed, Started: true}, lost: election.ErrLost},
		"late, and there is no second term":          {end: guard.End{Err: killed}, lost: election.ErrLost, once: true, status: statusFailure},
		"in time, and COMMAND not started":           {end: guard.End{Err: killed}, status: statusNotExec},
		"in time, and COMMAND killed":                {end: guard.End{Err: killed, Started: true}, status: statusFailure},
		"COMMAND is no program":                      {end: guard.End{Err: syscall.ENOEXEC}, status: statusNotExec},
		"COMMAND is no program, and the term over":   {end: guard.End{Err: syscall.ENOEXEC}, lost: election.ErrLost, status: statusNotExec},
		"COMMAND not started, as the guard was told": {end: guard.End{Expired: true}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &runner{once: c.once, log: slog.New(slog.DiscardHandler)}
			r.ctx, r.cancel = context.WithCancelCause(t.Context())
			_ = r.review(c.end, c.lost)
			if c.status == 0 {
				require.NoError(t, r.ended)
				require.NoError(t, r.ctx.Err())
				return
			}
			var e exit
			require.ErrorAs(t, r.ended, &e)
			require.Equal(t, c.status, e.status)
			require.Error(t, r.ctx.Err())
		})
	}
}
