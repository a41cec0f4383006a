package election

import (
	"crypto/rand"
	"strings"
)

// newSignature returns a signature that nobody ever used: the candidate's ID and
// a nonce. The nonce is how a candidate recognises its own record after a reply
// was lost.
func newSignature(id string) string {
	return id + "/" + rand.Text()
}

// idOf returns the ID in a signature.
func idOf(signature string) string {
	if i := strings.LastIndexByte(signature, '/'); i >= 0 {
		return signature[:i]
	}
	return signature
}
