//go:build unix

package demo

import (
	"context"
	"syscall"
	"time"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
)

// A Play is what is shown, and what it is judged by.
type Play struct {
	About  string // for people
	Parts  []Part
	script func(context.Context, *Stage) error
	rules  []oracle.Rule
}

// Judge checks what happened in the play against the promises that it is there
// to show. All of them must be kept: a play that shows nothing proves nothing.
func (p Play) Judge(h history.History) oracle.Findings { return oracle.Judge(h, p.rules...) }

// Ordered reports whether there is a succession.
func (p Play) Ordered() bool { return p.Parts[0].Order.Succession() != nil }

// Failover is the play of a leader that is killed, and of one that is put to sleep
// beyond its term.
func Failover(ttl time.Duration) Play {
	return Play{
		About:  "one is killed, one put to sleep",
		Parts:  []Part{{ID: "anna", TTL: ttl}, {ID: "ben", TTL: ttl}, {ID: "cleo", TTL: ttl}},
		script: failover,
		rules: []oracle.Rule{
			oracle.OneLeader, oracle.TokensGrow, oracle.WorkWithinTerm,
			oracle.SleepersNotice, oracle.LeaderInTime,
		},
	}
}

func failover(ctx context.Context, s *Stage) error {
	if err := s.stand(s.Play.Parts...); err != nil {
		return err
	}
	first, err := s.leader(ctx, "")
	if err != nil {
		return err
	}
	if err := s.pass(ctx, s.TTL/2); err != nil {
		return err
	}

	s.act(first, history.Killed, syscall.SIGKILL)
	second, err := s.leader(ctx, first)
	if err != nil {
		return err
	}
	if err := s.pass(ctx, s.TTL/2); err != nil {
		return err
	}

	s.act(second, history.Stopped, syscall.SIGSTOP)
	if _, err := s.leader(ctx, second); err != nil {
		return err
	}
	if err := s.pass(ctx, s.TTL/4); err != nil {
		return err
	}

	s.act(second, history.Woken, syscall.SIGCONT)
	if err := s.await(ctx, func(e history.Event) bool { return e.Who == second && e.Kind == history.Ended }); err != nil {
		return err
	}
	return s.pass(ctx, s.TTL/2)
}
