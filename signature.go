package election

import (
	"crypto/rand"
	"time"

	"github.com/electkv/election/internal/machine"
)

// newSignature returns a signature that nobody ever used: the candidate's ID and
// a nonce. The nonce is how a candidate recognises its own record after a reply
// was lost.
func newSignature(id string) string { return id + "/" + nonce() }

// nonce returns a text that nobody ever used.
func nonce() string { return rand.Text() }

// sinceOf returns when a record's owner came to what it is, zero if it does not tell.
func sinceOf(n machine.Note) time.Time {
	if n.Since == 0 {
		return time.Time{}
	}
	return time.UnixMilli(n.Since)
}
