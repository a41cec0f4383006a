package election

import (
	"encoding/json"
	"time"

	"github.com/electkv/election/kv"
)

// A note is what candidates that heed a succession tell each other beside the
// published value: kv.Record.Note, as JSON. Without a succession it tells only since
// when the leader leads. What is unknown in it is ignored, and
// a note that cannot be read says nothing.
type note struct {
	Rank  int      `json:"rank,omitempty"`
	Heirs []string `json:"heirs,omitempty"` // the owner's Options.Heirs, or what it set as leader
	Since int64    `json:"since,omitempty"` // when it came to this, by its own wall clock, in Unix milliseconds: for people only

	// Strikes are the terms in a row that ended early, by ID: in a leader's note,
	// handed on from leader to leader.
	Strikes map[string]int `json:"strikes,omitempty"`

	// Under is the leader under whom an heir stands, or the last one, or nobody if it
	// knows of none. An heir that has not looked yet leaves it out.
	Under *reign `json:"under,omitempty"`

	// Waited says that an heir had waited for its place.
	Waited bool `json:"waited,omitempty"`

	// Calls makes the record no heir's: the leader keeps the heir's safe for the
	// candidate with this ID.
	Calls string `json:"calls,omitempty"`

	// Called is the token of the leader's term that called this heir: no preference
	// displaces it while that leader leads.
	Called uint64 `json:"called,omitempty"`

	// Formerly is the signature that the called heir had before as heir, if it is the
	// same campaign that answers.
	Formerly string `json:"formerly,omitempty"`
}

// noteOf reads the note of a record.
func noteOf(rec kv.Record) note {
	var n note
	if json.Unmarshal([]byte(rec.Note), &n) != nil {
		return note{}
	}
	return n
}

// text returns the note as it is written. It is the same for the same note.
func (n note) text() string {
	b, err := json.Marshal(n)
	if err != nil {
		panic("election: a note always has a text: " + err.Error())
	}
	return string(b)
}

// called reports whether an heir was called by the leader under whom it stands.
func (n note) called() bool {
	return n.Called != 0 && n.Under != nil && n.Called == n.Under.Token
}

// since returns when the owner came to what it is, zero if it does not tell.
func (n note) since() time.Time {
	if n.Since == 0 {
		return time.Time{}
	}
	return time.UnixMilli(n.Since)
}
