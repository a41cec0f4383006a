package simulation

import (
	"fmt"
	"strings"
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/internal/sim"
)

// A census is what a whole run has shown.
type census struct {
	Seed      uint64         `json:"seed"`
	Schedules int            `json:"schedules"`
	Lined     int            `json:"lined"` // schedules with lines
	Terms     int            `json:"terms"`
	InLine    int            `json:"inLine"`     // terms in those
	Old       int            `json:"oldClients"` // in line there
	Observed  int            `json:"observed"`   // schedules in which observers judge
	Seen      int            `json:"seen"`       // terms in those
	Succeeded int            `json:"succeeded"`  // schedules with a succession
	InOrder   int            `json:"inOrder"`    // terms in those
	Lost      int            `json:"lost"`       // terms that ended against their leader's will
	Stale     int            `json:"fenced"`     // writes that the resource refused
	Overlaps  int            `json:"overlaps"`
	Forced    int            `json:"forced"` // overlaps by an operator's hand
	Requests  int            `json:"requests"`
	Hours     float64        `json:"simulatedHours"`
	Rules     map[string]int `json:"rules"`

	order []string
	began time.Time
}

func newCensus(seed uint64) *census {
	return &census{Seed: seed, Rules: map[string]int{}, began: time.Now()}
}

func (y *census) add(v verdict) {
	y.Schedules++
	terms := v.history.Stretches()
	if v.schedule.Store.Lines {
		y.Lined++
		y.InLine += len(terms)
		y.Old += len(v.history.Of("", history.Placed))
	}
	if v.schedule.Store.Expiry == sim.ByObserver {
		y.Observed++
		y.Seen += len(terms)
	}
	if v.schedule.Order != sim.NoOrder {
		y.Succeeded++
		y.InOrder += len(terms)
	}
	y.Terms += len(terms)
	for _, term := range terms {
		if strings.HasPrefix(term.Cause, election.ErrLost.Error()) {
			y.Lost++
		}
	}
	y.Stale += len(v.history.Of("", history.Refused))
	overlaps := oracle.Overlaps(v.history)
	if f, _ := v.findings.Of("one leader at a time"); f.Verdict == oracle.Broken {
		y.Overlaps += overlaps
	} else {
		y.Forced += overlaps
	}
	y.Requests += len(v.history.Of("", history.Sent))
	y.Hours += v.schedule.Horizon.Hours()
	for _, f := range v.findings {
		if _, known := y.Rules[f.Promise]; !known {
			y.order = append(y.order, f.Promise)
		}
		y.Rules[f.Promise] += f.Count
	}
}

func (y *census) findings() []oracle.Finding {
	all := []oracle.Finding{}
	for _, promise := range y.order {
		all = append(all, oracle.Finding{Promise: promise, Count: y.Rules[promise], Detail: "nothing of the kind happened"})
	}
	return all
}

// line says the most important in one line.
func (y *census) line() string {
	return fmt.Sprintf("seed %d, %d schedules (%d with lines, in which %d old clients stood), %d terms (%d where there are lines, %d in %d successions, %d where observers judge in %d schedules, %d lost), %d overlaps (and %d by an operator's hand), %d stale writes refused, %d requests, %.0f simulated hours, in %.1f s",
		y.Seed, y.Schedules, y.Lined, y.Old, y.Terms, y.InLine, y.InOrder, y.Succeeded, y.Seen, y.Observed, y.Lost, y.Overlaps, y.Forced, y.Stale, y.Requests, y.Hours, time.Since(y.began).Seconds())
}

// String says all of it.
func (y *census) String() string {
	var text strings.Builder
	text.WriteString(y.line())
	for _, promise := range y.order {
		fmt.Fprintf(&text, "\n%9d  %s", y.Rules[promise], promise)
	}
	return text.String()
}
