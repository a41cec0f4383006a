package engine_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv/kvfault"
)

// A stuckWriter blocks as long as it is stuck, as a pipe does that nobody reads.
type stuckWriter struct {
	freed chan struct{}
	mu    sync.Mutex
	text  strings.Builder
}

func (w *stuckWriter) Write(p []byte) (int, error) {
	<-w.freed
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *stuckWriter) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

func TestALogHandlerOrAHookThatBlocksEndsNoTerm(t *testing.T) {
	for what, stick := range map[string]func(o *election.Options, w *stuckWriter){
		"log":  func(o *election.Options, w *stuckWriter) { o.Logger = slog.New(slog.NewTextHandler(w, nil)) },
		"hook": func(o *election.Options, w *stuckWriter) { o.OnRole = func(election.Role) { <-w.freed } },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, faults := newBallot(t), kvfault.Wrap(memkv.New())
				w := &stuckWriter{freed: make(chan struct{})}
				stop := b.run(b.candidate(faults.Store, "a", firstCome, func(o *election.Options) { stick(o, w) }), "a")
				time.Sleep(ttl)
				for range 500 { // a refresh that fails is worth a record
					faults.On(kvfault.Refresh).Next(1).Fail(errStore)
					time.Sleep(ttl)
				}
				require.NoError(t, b.last().Err())
				require.Equal(t, "a", b.leaders())

				stopping := time.Now()
				require.ErrorIs(t, stop(), context.Canceled)
				require.LessOrEqual(t, time.Since(stopping), 5*time.Second, "a return waits for a while, and no longer")
				close(w.freed)
				synctest.Wait()
				if what == "log" {
					require.Contains(t, w.String(), "log records were dropped")
					require.Contains(t, w.String(), "released", "the newest are kept")
				}
			})
		})
	}
}

func TestLogRecordsAndRolesComeInOrderAndBeforeTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &stuckWriter{freed: make(chan struct{})}
		close(w.freed)
		var roles []election.Role
		c, err := election.New(memkv.New(), "e", &election.Options{
			TTL: ttl, Succession: election.FirstCome, Logger: slog.New(slog.NewTextHandler(w, nil)),
			OnRole: func(r election.Role) { roles = append(roles, r) },
		})
		require.NoError(t, err)
		require.NoError(t, c.Run(t.Context(), func(context.Context, *election.Term) error {
			require.Equal(t, []election.Role{election.RoleCandidate, election.RoleLeader}, roles)
			return nil
		}))
		require.Equal(t, election.RoleIdle, roles[len(roles)-1])
		elected, released := strings.Index(w.String(), "elected"), strings.Index(w.String(), "released")
		require.Positive(t, elected)
		require.Greater(t, released, elected)
	})
}

// A refresh that is on its way when the leader resigns may be called off. That is no trouble.
func TestARefreshThatIsCalledOffByTheReleaseIsNotComplainedOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, faults := newBallot(t), kvfault.Wrap(memkv.New())
		w := &stuckWriter{freed: make(chan struct{})}
		close(w.freed)
		log := func(o *election.Options) { o.Logger = slog.New(slog.NewTextHandler(w, nil)) }
		term, err := b.candidate(faults.Store, "a", log).Campaign(t.Context())
		require.NoError(t, err)
		faults.On(kvfault.Refresh).DropRequests()
		time.Sleep(ttl*4/10 + time.Millisecond) // the first refresh is on its way
		require.NoError(t, term.Err())
		require.NoError(t, term.Resign(t.Context()))
		require.NotContains(t, w.String(), "WARN")

		faults.On(kvfault.Refresh).Heal()
		term, err = b.candidate(faults.Store, "b", log).Campaign(t.Context())
		require.NoError(t, err)
		faults.On(kvfault.Refresh).Fail(errStore)
		time.Sleep(ttl / 2)
		require.Contains(t, w.String(), "refresh_failed", "as long as it leads, it is")
		require.NoError(t, term.Resign(t.Context()))
	})
}
