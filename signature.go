package election

import (
	"crypto/rand"
	"time"

	"github.com/electkv/election/internal/machine"
)

// newSignature returns a signature that was never used before: the candidate's ID and
// a nonce. By the nonce a candidate recognises its own record after a reply
// was lost.
func newSignature(id string) string { return id + "/" + nonce() }

// nonce returns a text that was never used before.
func nonce() string { return rand.Text() }

// sinceOf returns since when a record's owner has been leader or heir, zero if the record
// does not say.
func sinceOf(n machine.Note) time.Time {
	if n.Since == 0 {
		return time.Time{}
	}
	return time.UnixMilli(n.Since)
}
