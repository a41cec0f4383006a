//go:build unix

package demo

import (
	"context"
	"syscall"
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/cmd/elect/internal/order"
	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
)

// Plays returns the plays of each order of succession.
func Plays(ttl time.Duration) map[order.Name]Play {
	return map[order.Name]Play{
		order.First: playOf(firstCome, "first come: two hand over, one is killed", order.First,
			Part{ID: "anna", TTL: ttl}, Part{ID: "ben", TTL: ttl}, Part{ID: "cleo", TTL: ttl}).judgedBy(oracle.LeaderInTime, NeverEmpty(2)),
		order.Rank: playOf(byRank, "by rank: anna 1, ben 2, cleo 3, who comes last and sleeps for a while", order.Rank,
			Part{ID: "anna", TTL: ttl, Rank: 1, Stability: ttl}, Part{ID: "ben", TTL: ttl, Rank: 2, Stability: ttl}, Part{ID: "cleo", TTL: ttl, Rank: 3, Stability: ttl}).
			judgedBy(oracle.SleepersNotice, oracle.LeaderInTime, NeverEmpty(2), InTimeByRank("cleo", 2*ttl)),
		order.Ring: playOf(ring, "in a ring, each for a TTL; ben is killed on the way", order.Ring,
			Part{ID: "anna", TTL: ttl, MaxTerm: ttl}, Part{ID: "ben", TTL: ttl, MaxTerm: ttl}, Part{ID: "cleo", TTL: ttl, MaxTerm: ttl}).
			judgedBy(NeverEmpty(4), InTurn("anna", "ben", "cleo", "anna", "cleo")),
		order.List: playOf(list, "by list: anna wants cleo after her, then ben", order.List,
			Part{ID: "anna", TTL: ttl, Heirs: []string{"cleo", "ben"}}, Part{ID: "ben", TTL: ttl}, Part{ID: "cleo", TTL: ttl}).
			judgedBy(oracle.LeaderInTime, NeverEmpty(1), InTurn("anna", "cleo", "ben")),
	}
}

// playOf returns the play of an order.
func playOf(script func(context.Context, *actors) error, about string, by order.Name, parts ...Part) Play {
	for i := range parts {
		parts[i].Order = by
	}
	return Play{
		About: about,
		Parts: parts,
		script: func(ctx context.Context, s *Stage) error {
			a := &actors{Stage: s, anna: parts[0], ben: parts[1], cleo: parts[2]}
			return script(ctx, a)
		},
		rules: []oracle.Rule{oracle.OneLeader, oracle.TokensGrow, oracle.WorkWithinTerm, OnlyHeirs, RightNext(parts)},
	}
}

func (p Play) judgedBy(rules ...oracle.Rule) Play {
	p.rules = append(p.rules, rules...)
	return p
}

// actors are the three on their stage.
type actors struct {
	*Stage
	anna, ben, cleo Part
}

// inTurn does one thing after the other, until one fails.
func inTurn(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// comes starts a candidate and waits for its role.
func (a *actors) comes(ctx context.Context, p Part, role election.Role) func() error {
	return func() error {
		if err := a.stand(p); err != nil {
			return err
		}
		return a.becomes(ctx, p, role)()
	}
}

// becomes waits for a candidate's role.
func (a *actors) becomes(ctx context.Context, p Part, role election.Role) func() error {
	return func() error { return a.until(ctx, func() bool { return a.has(p, role) }) }
}

// someBecomes waits until somebody has a role.
func (a *actors) someBecomes(ctx context.Context, role election.Role) func() error {
	return func() error {
		return a.until(ctx, func() bool { return a.has(a.anna, role) || a.has(a.ben, role) || a.has(a.cleo, role) })
	}
}

func (a *actors) has(p Part, role election.Role) bool {
	return a.roles[p.ID] == string(role) && (role != election.RoleLeader || a.leads(p.ID))
}

// waits lets time pass.
func (a *actors) waits(ctx context.Context, d time.Duration) func() error {
	return func() error { return a.pass(ctx, d) }
}

// is does something to a candidate.
func (a *actors) is(p Part, what history.Kind, sig syscall.Signal) func() error {
	return func() error {
		a.act(p.ID, what, sig)
		return nil
	}
}

// resigns asks the leader to step down.
func (a *actors) resigns(ctx context.Context, p Part) func() error {
	return func() error {
		a.note(history.Event{At: boottime.Now(), Who: p.ID, Kind: history.Asked, Text: "to step down"})
		return a.during(ctx, func(ctx context.Context) error {
			return election.RequestResign(ctx, a.Store, a.Name)
		})
	}
}

// handsOver asks the leader to hand over to somebody.
func (a *actors) handsOver(ctx context.Context, p, to Part) func() error {
	return func() error {
		a.note(history.Event{At: boottime.Now(), Who: p.ID, Kind: history.Asked, Value: to.ID, Text: "to hand over to " + to.ID})
		return a.during(ctx, func(ctx context.Context) error {
			return election.RequestTransfer(ctx, a.Store, a.Name, to.ID)
		})
	}
}

func firstCome(ctx context.Context, a *actors) error {
	err := inTurn(
		a.comes(ctx, a.anna, election.RoleLeader),
		a.comes(ctx, a.ben, election.RoleHeir),
		a.comes(ctx, a.cleo, election.RoleCandidate),
		a.waits(ctx, a.TTL), // RightNext counts candidates that have stood for a TTL
		a.resigns(ctx, a.anna),
		a.becomes(ctx, a.ben, election.RoleLeader),
		a.someBecomes(ctx, election.RoleHeir),
		a.waits(ctx, a.TTL/2),
	)
	if err != nil {
		return err
	}
	last := a.anna // who is not even next
	if a.heir() == last.ID {
		last = a.cleo
	}
	return inTurn(
		a.handsOver(ctx, a.ben, last),
		a.becomes(ctx, last, election.RoleLeader),
		a.someBecomes(ctx, election.RoleHeir),
		a.waits(ctx, a.TTL/2),
		a.is(last, history.Killed, syscall.SIGKILL),
		a.someBecomes(ctx, election.RoleLeader),
		a.waits(ctx, a.TTL/2),
	)
}

func byRank(ctx context.Context, a *actors) error {
	return inTurn(
		a.comes(ctx, a.anna, election.RoleLeader),
		a.comes(ctx, a.ben, election.RoleHeir),
		a.comes(ctx, a.cleo, election.RoleHeir),
		a.becomes(ctx, a.cleo, election.RoleLeader),
		a.becomes(ctx, a.ben, election.RoleHeir),
		a.waits(ctx, a.cleo.Stability+a.TTL/2), // a shorter term would be held against her
		a.is(a.cleo, history.Stopped, syscall.SIGSTOP),
		a.becomes(ctx, a.ben, election.RoleLeader),
		a.waits(ctx, a.TTL/4),
		a.is(a.cleo, history.Woken, syscall.SIGCONT),
		a.becomes(ctx, a.cleo, election.RoleHeir),
		a.becomes(ctx, a.cleo, election.RoleLeader),
		a.waits(ctx, a.TTL/2),
	)
}

func ring(ctx context.Context, a *actors) error {
	return inTurn(
		a.comes(ctx, a.anna, election.RoleLeader),
		a.comes(ctx, a.ben, election.RoleHeir),
		a.comes(ctx, a.cleo, election.RoleCandidate),
		a.becomes(ctx, a.ben, election.RoleLeader),
		a.becomes(ctx, a.cleo, election.RoleLeader),
		a.becomes(ctx, a.anna, election.RoleHeir),
		a.is(a.ben, history.Killed, syscall.SIGKILL),
		a.becomes(ctx, a.anna, election.RoleLeader),
		a.becomes(ctx, a.cleo, election.RoleLeader),
		a.waits(ctx, a.TTL/4),
	)
}

func list(ctx context.Context, a *actors) error {
	return inTurn(
		a.comes(ctx, a.anna, election.RoleLeader),
		a.comes(ctx, a.ben, election.RoleHeir),
		a.waits(ctx, a.TTL/4),
		a.comes(ctx, a.cleo, election.RoleHeir),
		a.waits(ctx, a.TTL/2),
		a.is(a.anna, history.Killed, syscall.SIGKILL),
		a.becomes(ctx, a.cleo, election.RoleLeader),
		a.becomes(ctx, a.ben, election.RoleHeir),
		a.waits(ctx, a.TTL/2),
		a.resigns(ctx, a.cleo),
		a.becomes(ctx, a.ben, election.RoleLeader),
		a.waits(ctx, a.TTL/2),
	)
}
