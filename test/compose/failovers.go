package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
)

// slack is how much later than promised things may happen: the machine is busy with
// a score of servers.
const slack = 10 * time.Second

// failovers plays failovers on all clusters.
func failovers(ctx context.Context, p *project) error {
	return p.withElect(ctx, func(elect string) error {
		plays, err := p.failovers(elect, faults())
		if err != nil {
			return err
		}
		return p.perform(ctx, plays)
	})
}

// quick plays the demo on each server that is alone, and a failover on each cluster.
func quick(ctx context.Context, p *project) error {
	return p.withElect(ctx, func(elect string) error {
		plays, err := p.failovers(elect, faults()[:1])
		if err != nil {
			return err
		}
		demos, err := p.demos(elect)
		if err != nil {
			return err
		}
		return p.perform(ctx, append(plays, demos...))
	})
}

// withElect builds elect, for as long as do runs.
func (p *project) withElect(ctx context.Context, do func(elect string) error) error {
	dir, err := os.MkdirTemp("", "election-compose-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	elect := filepath.Join(dir, "elect")
	if _, err := output(exec.CommandContext(ctx, "go", "build", "-o", elect, "./cmd/elect")); err != nil {
		return fmt.Errorf("build elect: %w", err)
	}
	return do(elect)
}

// A play ends with a verdict, for people, and an error unless all promises were kept.
type play struct {
	title string
	run   func(context.Context) (verdict string, err error)
}

// perform runs plays side by side, and says which promises were kept.
func (p *project) perform(ctx context.Context, plays []play) error {
	var playing sync.WaitGroup
	verdicts, errs := make([]string, len(plays)), make([]error, len(plays))
	for i, one := range plays {
		playing.Go(func() {
			if verdicts[i], errs[i] = one.run(ctx); errs[i] != nil {
				errs[i] = fmt.Errorf("%s: %w", one.title, errs[i])
			}
		})
	}
	playing.Wait()
	for i, one := range plays {
		fmt.Fprintf(p.log, "\n%s\n%s", one.title, verdicts[i])
	}
	return errors.Join(errs...)
}

// failovers returns a play for each cluster.
func (p *project) failovers(elect string, played []fault) ([]play, error) {
	all, err := clusters(p.file)
	if err != nil {
		return nil, err
	}
	var plays []play
	for _, c := range all {
		plays = append(plays, play{"failovers of " + c.name, func(ctx context.Context) (string, error) {
			return p.play(ctx, elect, c, played)
		}})
	}
	return plays, nil
}

// play has three candidates stand in an election while the server that leads their
// store fails in several ways, and judges what happened.
func (p *project) play(ctx context.Context, elect string, c *cluster, played []fault) (verdict string, err error) {
	defer func() { err = errors.Join(err, c.close()) }()
	life, err := c.store.Lifetime(ttl)
	if err != nil {
		return "", err
	}
	s := &stage{
		elect: elect, name: "compose-" + strings.ToLower(rand.Text()[:8]), cluster: c, log: p.log,
		cast: map[string]*candidate{}, url: map[string]int{},
		past: history.History{About: history.About{Title: c.name + " in containers", TTL: ttl, Life: life.Max, Slack: slack}},
	}
	for i, who := range []string{"anna", "ben", "cleo"} {
		err = errors.Join(err, s.enter(who, i))
	}
	for _, f := range played {
		if err == nil {
			err = p.playFault(ctx, s, f, life.Max+c.recovery)
		}
	}
	err = errors.Join(err, s.leave())
	findings := oracle.Judge(s.past, oracle.OneLeader, oracle.TokensGrow, oracle.WorkWithinTerm, oracle.LeaderInTime)
	if !findings.AllKept() {
		err = errors.Join(errors.New("not every promise was shown to be kept"), save(s.past), err)
	}
	return findings.String(), err
}

// playFault has the leader of the store fail for a while. The election goes on
// without it, also if its own leader is killed meanwhile. Where the fault keeps all
// candidates from the store, the election goes on afterwards.
func (p *project) playFault(ctx context.Context, s *stage, f fault, within time.Duration) (err error) {
	service, err := s.settled(ctx)
	if err != nil {
		return err
	}
	if _, err := s.leader(ctx, "", boottime.Now(), within+slack); err != nil {
		return err
	}
	away := f.cuts && s.cluster.network != ""
	if away {
		service = s.cluster.network
	}
	what := service + " " + f.does
	undo := func(context.Context) error { return nil }
	begin := func() (err error) {
		s.note(history.Event{At: boottime.Now(), Kind: history.Fault, Text: what})
		undo, err = f.do(ctx, p, s.cluster, service)
		return err
	}
	killed := ""
	if away {
		err = begin()
		sleep(ctx, within)
	} else {
		killed, err = s.outlives(ctx, what, begin, within)
	}
	s.note(history.Event{At: boottime.Now(), Kind: history.Healed, Text: what + " no longer"})
	healing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if err := errors.Join(err, undo(healing)); err != nil {
		return err
	}
	if killed != "" {
		err = s.enter(killed+"-again", s.url[killed])
	}
	if err != nil {
		return err
	}
	_, err = s.due(ctx, "", within, what+" no longer")
	return err
}

// outlives has a fault begin, waits for a leader, kills it, and waits for the next.
func (s *stage) outlives(ctx context.Context, what string, begin func() error, within time.Duration) (killed string, err error) {
	if err := begin(); err != nil {
		return "", err
	}
	first, err := s.due(ctx, "", within, what)
	if err != nil {
		return "", err
	}
	if err := s.kill(first); err != nil {
		return "", err
	}
	_, err = s.due(ctx, first, within, first+" was killed")
	return first, err
}

// settled waits until all servers of the store are well, and returns the service of
// the one that leads them.
func (s *stage) settled(ctx context.Context) (service string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		asking, cancel := context.WithTimeout(ctx, 5*time.Second)
		service, err = s.cluster.leader(asking)
		cancel()
		if err == nil {
			return service, nil
		}
		if !sleep(ctx, 500*time.Millisecond) {
			return "", fmt.Errorf("the servers are not well: %w", err)
		}
	}
}

// save keeps a history that is not as it should be, and says where.
func save(past history.History) error {
	f, err := os.CreateTemp("", "election-failovers-*.ndjson")
	if err != nil {
		return err
	}
	if err := errors.Join(history.Write(f, past), f.Close()); err != nil {
		return err
	}
	return fmt.Errorf("what happened is in %s", f.Name())
}
