package snapshot

import (
	"time"

	"github.com/electkv/election"
)

// A Term is one of an election's history. Its JSON is that of elect history.
type Term struct {
	Name       string          `json:"name"`
	ID         string          `json:"id"`
	Token      uint64          `json:"token"`
	Began      time.Time       `json:"began,omitzero"`
	Ended      time.Time       `json:"ended,omitzero"` // zero for the present term
	Reason     election.Reason `json:"reason,omitempty"`
	HandedOver bool            `json:"handed_over"`
}

// TermOf returns a term of the election called name.
func TermOf(name string, t election.PastTerm) Term {
	return Term{name, t.ID, t.Token, t.Began.UTC(), t.Ended.UTC(), t.Reason, t.HandedOver}
}
