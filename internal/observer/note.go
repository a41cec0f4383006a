package observer

import (
	"strconv"
	"strings"

	"github.com/electkv/election/kv"
)

// The register gives each refresh a revision. Callers get the revision of a record's
// content, which no refresh changes, as in every other store. It is
// computed from the token and the register's revision that the last change has
// replaced, which is kept before the note:
//
//	17 {"rank":7}

// sealed returns a record with its note as the register is to hold it, where its
// content takes the place of what had the revision prior.
func sealed(rec kv.Record, prior uint64) kv.Record {
	rec.Note = strconv.FormatUint(prior, 10) + " " + rec.Note
	return rec
}

// opened returns a record in the register as callers see it.
func opened(rec kv.Record) kv.Record {
	if rec.Foreign {
		return rec
	}
	digits, note, _ := strings.Cut(rec.Note, " ")
	prior, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		prior, note = 0, rec.Note // not written by this package
	}
	rec.Note, rec.Revision = note, revision(rec.Token, prior)
	rec.Lease, rec.Permanent = "", false
	return rec
}

// revision returns one number for each content of each token. Under one token, all
// differ; under two, they are alike once in 2^64.
func revision(token, prior uint64) uint64 {
	return scramble(scramble(token) + prior)
}

// scramble maps numbers to numbers, one to one, and neighbours far apart.
func scramble(n uint64) uint64 {
	n += 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}
