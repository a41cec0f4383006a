package election

import (
	"context"
	"time"

	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/kv"
)

// A PastTerm is a term of leadership that an election remembers.
type PastTerm struct {
	ID    string // the leader's
	Token uint64

	// Began and Ended are by the wall clocks of those who led or saw it, to a tenth of a
	// second. Ended is zero for the present term.
	Began, Ended time.Time

	// Reason is why it ended: ReasonGone if its leader could not say so. It is empty for
	// the present term.
	Reason Reason

	// HandedOver says that the next term began when its leader handed the safe over.
	HandedOver bool
}

// ReasonGone is why a term in an election's history has ended whose leader could not say why: it
// has died, or lost the store, or its record was removed.
const ReasonGone Reason = "gone"

// History returns the last terms of the election, the oldest first and the present one last: 64
// at most, or as many as fit into 768 bytes. It reads the leader's record, and returns
// ErrNoLeader if nobody leads.
//
// The history is for people. Leaders carry it along in their records, and heirs remember it, so
// it costs no request. If a leader and its heir die at the same time, the terms that only they
// knew are forgotten. There is no history without heirs (Options.NoHeir), and other programs'
// locks are not in it.
func History(ctx context.Context, store kv.Store, name string) ([]PastTerm, error) {
	rec, err := leaderRecord(ctx, store, name, "history")
	if err != nil || rec.Foreign {
		return nil, err
	}
	n := machine.NoteOf(rec)
	var terms []PastTerm
	for _, t := range machine.PastOf(n.Past) {
		terms = append(terms, PastTerm{
			ID: t.ID, Token: t.Token, Began: time.UnixMilli(t.Began), Ended: time.UnixMilli(t.Ended),
			Reason: Reason(machine.ReasonOf(t.Why)), HandedOver: t.HandedOver,
		})
	}
	return append(terms, PastTerm{ID: machine.IDOf(rec.Signature), Token: rec.Token, Began: sinceOf(n)}), nil
}
