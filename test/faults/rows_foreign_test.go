//go:build linux

package faults

import (
	"os/exec"
	"strings"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
)

// foreignRows put into the safe what this library did not write.
func foreignRows() []row {
	return []row{
		{
			number: 33, fault: "record overwritten by another program", only: holdsOthers, short: true,
			must: []oracle.Rule{oracle.ForeignUnharmed, oracle.LeaderInTime},
			play: func(s *stage) {
				s.taken("somebody else's lock")
				s.gone()
			},
		},
		{
			number: 35, letter: "a", fault: "records that nobody can read, within a term", only: holdsOthers,
			must: []oracle.Rule{oracle.ForeignUnharmed, oracle.LeaderInTime},
			play: func(s *stage) {
				values := s.unreadable()
				s.taken(values[0])
				for _, value := range values[1:] {
					since := boottime.Now()
					s.overwrite(value)
					s.nobody(since, s.ttl)
					s.unharmed()
				}
				s.gone()
			},
		},
		{
			number: 35, letter: "b", fault: "a record that nobody can read, before all began", only: holdsOthers,
			must: []oracle.Rule{oracle.ForeignUnharmed, oracle.LeaderInTime},
			prepare: func(s *stage, _ string, _ *exec.Cmd) {
				if len(s.events().Of("", history.Placed)) == 0 {
					s.overwrite(s.unreadable()[1])
				}
			},
			play: func(s *stage) {
				for range s.names {
					s.await("a candidate sees it", func(e history.Event) bool {
						return e.Kind == history.Seen && e.Signature == ""
					})
				}
				s.nobody(0, 2*s.ttl)
				s.unharmed()
				s.gone()
			},
		},
	}
}

// unreadable returns values that are no records of ours: no text at all, the
// text of a later version, one that is almost ours, and a large one.
func (s *stage) unreadable() []string {
	largest := 1 << 20
	if s.col.kind == kindConsul {
		largest = 500 << 10 // it takes no values above 512 KiB
	}
	return []string{
		"\x00\xff{\"election\":",
		`{"election":2,"signature":"x","ttl_ms":1000,"token":18446744073709551615}`,
		`{"election":1,"signature":"","ttl_ms":-1}`,
		"",
		strings.Repeat("large ", largest/6),
	}
}
