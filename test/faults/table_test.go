//go:build linux

package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
)

// rows returns the table: each file of rows adds its own.
func rows() []row {
	all := []row{}
	all = append(all, candidateRows()...)
	all = append(all, replyRows()...)
	all = append(all, networkRows()...)
	all = append(all, serverRows()...)
	all = append(all, foreignRows()...)
	all = append(all, hostRows()...)
	all = append(all, streamRows()...)
	all = append(all, redisRows()...)
	all = append(all, clockRows()...)
	all = append(all, sqlRows()...)
	all = append(all, etcdRows()...)
	all = append(all, consulRows()...)
	all = append(all, fileRows()...)
	all = append(all, watchRows()...)
	all = append(all, partitionRows()...)
	all = append(all, limitRows()...)
	all = append(all, peerRows()...)
	all = append(all, neighbourRows()...)
	return all
}

// TestFaults plays the table.
func TestFaults(t *testing.T) {
	for _, c := range columns() {
		if *only != "" && *only != c.name {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			if !*full {
				t.Parallel() // no row of the short choice stands alone
			}
			common := sync.OnceValue(func() *servers { return c.common(t) })
			for _, r := range rows() {
				if r = r.in(c); *full || r.short && c.isBrief(r) {
					playRow(t, c, r, common)
				}
			}
		})
	}
}

// isBrief reports whether a row of the short choice is played in a column.
func (c column) isBrief(r row) bool { return c.brief == nil || slices.Contains(c.brief, r.id()) }

// playRow plays a row, if it applies.
func playRow(t *testing.T, c column, r row, common func() *servers) {
	if r.only != nil {
		if why := r.only(c); why != "" {
			publish(t, result{Store: c.name, Number: r.number, Letter: r.letter, Fault: r.fault, Reason: why})
			return
		}
	}
	t.Run(r.id()+" "+r.fault, func(t *testing.T) {
		if !r.alone {
			t.Parallel()
		}
		play(t, c, r, common)
	})
}

// play plays a row and judges it, also if it was given up half-way. In the short choice a row is played
// up to three times if all that was wrong is that a leader came too late, that something was not seen,
// or that what had to break did not.
func play(t testing.TB, c column, r row, common func() *servers) {
	for plays := 1; ; plays++ {
		s := newStage(t, c, r, common)
		j := s.perform()
		if len(j.wrong) == 0 || j.serious || *full || *soak > 0 || plays == 3 {
			s.report(j)
			return
		}
		t.Logf("%s: it is played again, since this machine may have been too slow:\n%s", j.history.Title, strings.Join(j.wrong, "\n"))
	}
}

// perform plays the stage's row, and judges it.
func (s *stage) perform() (j judgement) {
	over := false
	defer func() {
		s.finish()
		j = s.judge()
		if !over {
			j.wrong = append(j.wrong, "the row was given up")
			s.report(j)
		}
	}()
	s.enter(s.row.names()...)
	s.row.play(s)
	s.settle()
	over = true
	return j
}

// names are those of the candidates.
func (r row) names() []string {
	n := r.candidates
	switch {
	case r.cast != nil:
		return r.cast
	case n == 0:
		n = 3
	}
	return []string{"anna", "ben", "cleo", "dora", "emil", "fay"}[:n]
}

// report publishes a judgement, and prints and saves what was wrong.
func (s *stage) report(j judgement) {
	file := ""
	if len(j.wrong) > 0 || os.Getenv("ELECTION_RESULTS") != "" {
		file = s.save(j.history)
	}
	if !s.row.control {
		publish(s.t, s.result(j, file))
	}
	if len(j.wrong) == 0 {
		s.t.Logf("%d terms, %d overlaps", len(j.history.Stretches()), oracle.Overlaps(j.history))
		return
	}
	text := ""
	if s.row.bug != "" {
		text = "This is a test of the tests: " + s.row.bug + " was planted, and has to be found.\n"
	}
	for _, wrong := range j.wrong {
		text += wrong + "\n"
	}
	s.t.Errorf("%s\n%s\n%s\n%s\n\n%s\nits history: %s\nagain: %s", j.history.Title, text,
		history.Timeline(j.history, 110), history.Legend(), j.findings, file, j.history.Command)
	for _, who := range s.names {
		s.t.Logf("%s said:\n%s", who, s.cast[who].said)
	}
	s.t.Logf("once more, since what they said is long: %s\n%s", j.history.Title, text)
}

// save writes the history to a file that stays.
func (s *stage) save(h history.History) string {
	dir := os.Getenv("ELECTION_RESULTS")
	if dir == "" {
		dir = filepath.Join(os.TempDir(), "election-faults")
	}
	dir = filepath.Join(dir, "history")
	require.NoError(s.t, os.MkdirAll(dir, 0o755))
	path := filepath.Join(dir, fmt.Sprintf("%s-%s%s.ndjson", s.col.name, s.row.id(), s.suffix()))
	require.NoError(s.t, history.Save(path, h))
	return path
}

// suffix tells the histories of one row apart.
func (s *stage) suffix() string {
	if s.row.bug == "" {
		return ""
	}
	return "-" + strings.ReplaceAll(s.row.bug, " ", "-")
}

// What a store breaks by luck is no pretext for the rest: the fence has to be seen
// to hold, and nothing may be silent.
func TestARowThatMayBeRedSaysWhyAndDemandsTheFence(t *testing.T) {
	for _, r := range rows() {
		if len(r.may) == 0 {
			require.Empty(t, r.because, r.id())
			continue
		}
		require.NotEmpty(t, r.because, r.id())
		require.Empty(t, r.red, r.id())
		require.Empty(t, r.with, r.id())
		s := &stage{row: r}
		for _, rule := range append([]oracle.Rule{oracle.FenceHolds}, r.may...) {
			require.False(t, s.excused(rule(oracle.Evidence{}), r.silent), r.id())
		}
		require.False(t, s.excused(oracle.FenceHolds(oracle.Evidence{}), r.may), r.id())
	}
}

func TestNoTwoRowsHaveOneID(t *testing.T) {
	ids := map[string]string{}
	for _, r := range rows() {
		require.Emptyf(t, ids[r.id()], "%s is of another row too: %s", r.id(), r.fault)
		ids[r.id()] = r.fault
	}
}
