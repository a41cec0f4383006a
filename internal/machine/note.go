package machine

import (
	"encoding/json"
	"strings"

	"github.com/electkv/election/kv"
)

// A Note is what candidates tell each other beside the published value: kv.Record.Note, as
// JSON. What is unknown in it is ignored, and a note that cannot be read says nothing.
type Note struct {
	Rank  int      `json:"rank,omitempty"`
	Heirs []string `json:"heirs,omitempty"` // the owner's Options.Heirs, or what it set as leader
	Since int64    `json:"since,omitempty"` // when it came to this, by its own wall clock, in Unix milliseconds: for people only

	// Strikes are the terms in a row that ended early, by ID: in a leader's note,
	// handed on from leader to leader.
	Strikes map[string]int `json:"strikes,omitempty"`

	// Past are the terms before a leader's, as a text: for people only.
	Past string `json:"past,omitempty"`

	// Under is the leader that the heir stands under, or the last one, or empty if it
	// knows of none. An heir that has not read the leader's key yet leaves it out.
	Under *Leader `json:"under,omitempty"`

	// Waited says that an heir had waited for its place.
	Waited bool `json:"waited,omitempty"`

	// Calls makes the record no heir's: the leader keeps the heir's key for the candidate
	// with this ID.
	Calls string `json:"calls,omitempty"`

	// Called is the token of the leader's term that called this heir: no preference
	// displaces it while that leader leads.
	Called uint64 `json:"called,omitempty"`

	// Formerly is the signature that the called heir had before as heir, if it is the
	// same campaign that answers.
	Formerly string `json:"formerly,omitempty"`
}

// NoteOf reads the note of a record.
func NoteOf(rec kv.Record) Note {
	var n Note
	if rec.Note == "" || json.Unmarshal([]byte(rec.Note), &n) != nil {
		return Note{}
	}
	return n
}

// Text returns the note as it is written. It is the same for the same note.
func (n Note) Text() string { return textOfJSON(n) }

// byCall reports whether an heir was called by the leader that it stands under.
func (n Note) byCall() bool {
	return n.Called != 0 && n.Under != nil && n.Called == n.Under.Token
}

// A Leader is a leader's term, as others report it.
type Leader struct {
	ID      string         `json:"id"`
	Token   uint64         `json:"token"`
	Rank    int            `json:"rank,omitempty"`
	Heirs   []string       `json:"heirs,omitempty"`
	Strikes map[string]int `json:"strikes,omitempty"` // terms in a row that ended early, by ID
}

// LeaderOf returns the leader that a record is of.
func LeaderOf(rec kv.Record) Leader {
	n := NoteOf(rec)
	return Leader{ID: IDOf(rec.Signature), Token: rec.Token, Rank: n.Rank, Heirs: n.Heirs, Strikes: n.Strikes}
}

func (r Leader) contender() Contender { return Contender{ID: r.ID, Rank: r.Rank, Heirs: r.Heirs} }

// IDOf returns the ID in a signature.
func IDOf(signature string) string {
	if i := strings.LastIndexByte(signature, '/'); i >= 0 {
		return signature[:i]
	}
	return signature
}

func textOfJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("election: a note always has a text: " + err.Error())
	}
	return string(b)
}
