package chronicle

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/kv"
)

// A State is what an election is in during a spell.
type State string

// The states of an election.
const (
	Led     State = "leader"  // a candidate leads
	Foreign State = "foreign" // another program's lock is in the leader's safe
	Vacant  State = "vacant"  // nobody leads
	Unknown State = "unknown" // the store could not be watched
)

// An End is how a term ended, as far as an observer can tell.
type End string

// The ends of a term. The zero End is that of a term that goes on, and of a spell that is no
// term.
const (
	HandedOver End = "handed over" // the heir leads by the leader's own act
	Lost       End = "lost"        // an heir stood, and the leader did not hand over to it
	Over       End = "over"        // it was not handed over, and no heir is known of: it was given up, or lost
	Unseen     End = "unseen"      // it ended while the store could not be watched
)

// A Spell is a stretch of time in which an election was in one state. A term is a spell in the
// state [Led].
type Spell struct {
	State State
	From  time.Duration
	To    time.Duration // zero while it goes on
	Found bool          // it had begun before it was first seen, at From
	Told  bool          // it had begun before, and From, and To if it is over, are by the clocks of those who led
	Owner Owner         // of the record; zero if there is none
	End   End
	// Reason is why a term ended, as its leader told the next; empty as long as that is not known.
	Reason election.Reason
}

// An Owner is who has a record, as the record tells. Of long texts only the beginning is kept.
type Owner struct {
	ID    string // empty if foreign
	Value string // what it published last
	Token uint64
	Rank  int
	Heirs []string      // of a leader: the candidates that should follow it, in order
	TTL   time.Duration // of the record; zero if unknown
	Since time.Time     // when it became leader or heir, by its own wall clock; zero if unknown

	signature string
}

func ownerOf(rec kv.Record) Owner {
	if rec.Foreign {
		return Owner{Value: beginning(rec.Value), Token: rec.Token, TTL: rec.TTL}
	}
	n := machine.NoteOf(rec)
	o := Owner{
		ID: beginning(machine.IDOf(rec.Signature)), Value: beginning(rec.Value), Token: rec.Token, Rank: n.Rank, Heirs: n.Heirs,
		TTL: rec.TTL, signature: rec.Signature,
	}
	if n.Since != 0 {
		o.Since = time.UnixMilli(n.Since)
	}
	return o
}

// beginning returns a text that is no longer than people read.
func beginning(text string) string { return cut(text, 1<<10) }

// cut returns at most so many bytes of a text.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// equal reports whether two records tell the same.
func (o Owner) equal(other Owner) bool {
	same := slices.Equal(o.Heirs, other.Heirs)
	o.Heirs, other.Heirs = nil, nil
	return same && reflect.DeepEqual(o, other)
}

// sameTerm reports whether two records are of one term. Of another program's locks only the
// store's order, if it has one, tells.
func (o Owner) sameTerm(other Owner) bool {
	return o.signature == other.signature && o.Token == other.Token
}

// sameCampaign reports whether one candidate wrote both records in one campaign, in which it
// signs with a serial number after the last dot.
func (o Owner) sameCampaign(other Owner) bool {
	return o.signature != "" && campaign(o.signature) == campaign(other.signature)
}

func campaign(signature string) string {
	if i := strings.LastIndexByte(signature, '.'); i >= 0 {
		return signature[:i]
	}
	return signature
}

// stateOf returns the state of an election whose leader's safe holds a record, or none.
func stateOf(rec kv.Record, vacant bool) State {
	switch {
	case vacant:
		return Vacant
	case rec.Foreign:
		return Foreign
	}
	return Led
}
