package demo

import (
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/cmd/elect/internal/order"
)

// A Part is what a candidate of a play is given.
type Part struct {
	ID  string        `json:"id"`
	TTL time.Duration `json:"ttl"`

	Order     order.Name    `json:"order"`
	Rank      int           `json:"rank,omitempty"`
	Heirs     []string      `json:"heirs,omitempty"`
	Stability time.Duration `json:"stability,omitempty"`
	MaxTerm   time.Duration `json:"max_term,omitempty"`
}

func (p Part) options() *election.Options {
	return &election.Options{
		ID: p.ID, TTL: p.TTL,
		Succession: p.Order.Succession(), Rank: p.Rank, Heirs: p.Heirs,
		Stability: p.Stability, MaxTerm: p.MaxTerm,
	}
}

func (p Part) contender() election.Contender {
	return election.Contender{ID: p.ID, Rank: p.Rank, Heirs: p.Heirs}
}
