package snapshot

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/kv"
)

// A Member is one of an election's roster.
type Member struct {
	ID      string        `json:"id"`
	Value   string        `json:"value"`
	Rank    int           `json:"rank"`
	Role    election.Role `json:"role,omitempty"`
	Since   time.Time     `json:"since,omitzero"`   // by its own wall clock
	Number  uint64        `json:"number,omitempty"` // larger for one that came later; none for one that keeps no record
	Safe    string        `json:"safe,omitempty"`
	Foreign bool          `json:"foreign,omitempty"`
}

// members adds the roster, if the store keeps one and there is a record in it.
func (s *State) members(ctx context.Context, store kv.Store, trouble func(error)) {
	if _, ok := store.(kv.Roster); !ok {
		return
	}
	all, err := election.Members(ctx, store, s.Name)
	if err != nil {
		trouble(fmt.Errorf("cannot tell who else takes part: %w", err))
		return
	}
	if !slices.ContainsFunc(all, func(m election.Member) bool { return m.Safe != "" }) {
		return
	}
	for _, m := range all {
		s.Members = append(s.Members, Member{m.ID, m.Value, m.Rank, m.Role, m.Since.UTC(), m.Number, m.Safe, m.Foreign})
	}
}
