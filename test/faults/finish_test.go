//go:build linux

package faults

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/internal/trace"
)

// finish lets all candidates leave, the leader last, and waits for them.
func (s *stage) finish() {
	var calls sync.WaitGroup
	for _, a := range s.cast {
		calls.Go(a.calls.finally)
	}
	calls.Wait()
	for _, a := range s.cast {
		for _, link := range a.links {
			link.Heal()
		}
	}
	last := ""
	if term, ok := s.leads(); ok {
		last = term.Who
	}
	var all sync.WaitGroup
	for who, a := range s.cast {
		if !slices.Contains(a.part.Who, last) {
			all.Go(func() { s.dismiss(who) })
		}
	}
	all.Wait()
	for who := range s.cast {
		s.dismiss(who)
	}
}

// dismiss tells a process to leave, and waits until it has.
func (s *stage) dismiss(who string) {
	a := s.cast[who]
	if a.gone {
		return
	}
	if a.doom == "" {
		a.Signal(syscall.SIGCONT)
		_ = a.Order("heal")  // it may have ended,
		_ = a.Order("close") // as end will tell
	}
	s.trouble(a.end(s.ttl + 10*time.Second))
}

// A judgement is what a row comes to.
type judgement struct {
	history  history.History
	findings oracle.Findings
	wrong    []string // why the row fails; empty if it does not
	serious  bool     // it is not only that a leader came too late, or that something was not seen or not broken
}

// judge asks all rules, and holds their answers against what the row expects.
func (s *stage) judge() judgement {
	j := judgement{history: s.traced()}
	j.findings = oracle.Judge(j.history, slices.Concat(oracle.All(), oracle.Asked(), []oracle.Rule{trace.Followed, trueAlarms})...)
	j.findings = append(j.findings, s.calm())
	for _, rule := range append(always(), s.row.must...) {
		f := j.of(rule)
		if f.Verdict == oracle.Silent && !s.excused(f, s.row.silent) && !s.excused(f, s.row.red) {
			j.wrong = append(j.wrong, fmt.Sprintf("nothing was seen of %q: %s", f.Promise, f.Detail))
		}
	}
	for _, f := range j.findings.Broken() {
		if !s.excused(f, s.row.red) && !s.excused(f, s.row.may) {
			j.wrong = append(j.wrong, fmt.Sprintf("broken: %s: %s", f.Promise, f.Detail))
			j.serious = j.serious || !s.excused(f, []oracle.Rule{oracle.LeaderInTime})
		}
	}
	for _, rule := range s.row.red {
		if f := j.of(rule); f.Verdict != oracle.Broken {
			j.wrong = append(j.wrong, fmt.Sprintf("without %s, %q should be broken; it is %s: %s", s.row.without, f.Promise, f.Verdict, f.Detail))
		}
	}
	return j
}

// of returns the finding of a rule. Some are only a single row's.
func (j judgement) of(rule oracle.Rule) oracle.Finding {
	if f, ok := j.findings.Of(rule(oracle.Evidence{}).Promise); ok {
		return f
	}
	return oracle.Judge(j.history, rule)[0]
}

// excused reports whether a finding is of one of the rules.
func (s *stage) excused(f oracle.Finding, rules []oracle.Rule) bool {
	for _, rule := range rules {
		if rule(oracle.Evidence{}).Promise == f.Promise {
			return true
		}
	}
	return false
}

// calm is the finding that no process ended other than it should.
func (s *stage) calm() oracle.Finding {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := oracle.Finding{Promise: "no crash", Verdict: oracle.Kept, Count: len(s.names), Detail: fmt.Sprintf("%d processes", len(s.names))}
	if len(s.troubles) > 0 {
		f.Verdict, f.Detail = oracle.Broken, strings.Join(s.troubles, "\n")
	}
	return f
}
