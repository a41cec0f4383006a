package rediskv

import (
	"fmt"
	"strings"

	"github.com/electkv/election/kv"
)

const (
	// No record's key ends so.
	counterEnding = ":election-fence"
	serverEnding  = ":election-server"
	textEnding    = ":election-record"

	hintPrefix = "election:"
)

// A place is where a safe is kept. All keys are in one slot of a cluster.
type place struct {
	record  string // the key of the record: what other programs look at
	text    string // the key of the record's text: the same, unless that has only the value
	counter string // the key of the last token or revision given out
	server  string // the key of the server's identity, if there is a quarantine
	channel string // where writers tell watches to look
	set     string // of a member's safe: the key of its roster's set; else empty
	member  string // its key in the set
}

// place returns where the safe of a name is kept. Two names never share a key:
// a record's key has the name verbatim, and the others' an ending that a record's
// may not have, with either "}" or ":" before it.
func (s *Store) place(name string) (place, error) {
	if roster, key, ok := kv.MemberOf(name); ok {
		return s.memberPlace(roster, key)
	}
	key, err := s.key(name)
	if err != nil {
		return place{}, err
	}
	stem := neighbour(key)
	at := place{record: key, text: key, counter: stem + counterEnding, server: stem + serverEnding, channel: hintPrefix + key}
	if s.plain {
		at.text = stem + textEnding
	}
	return at, nil
}

// key returns the key of a safe's record.
func (s *Store) key(name string) (string, error) {
	if s.unfit != nil {
		return "", s.unfit
	}
	if name == "" {
		return "", fmt.Errorf("rediskv: a safe needs a name: %w", kv.ErrInvalid)
	}
	key := s.prefix + name
	for _, ending := range []string{counterEnding, serverEnding, textEnding} {
		if strings.HasSuffix(key, ending) {
			return "", fmt.Errorf("rediskv: name %q: the ending %q is taken: %w", name, ending, kv.ErrInvalid)
		}
	}
	if strings.Contains(key, rosterEnding) {
		return "", fmt.Errorf("rediskv: name %q: %q is kept for rosters: %w", name, rosterEnding, kv.ErrInvalid)
	}
	if !tagged(key) && strings.Contains(key, "}") {
		return "", fmt.Errorf("rediskv: name %q: want every } to close a hash tag, as in {a}: %w", name, kv.ErrInvalid)
	}
	return key, nil
}

// keys returns the keys of a safe for a script, and then those that it needs
// besides. To a cluster one key given twice is one key; scripts of several fail
// while their slot migrates.
func (at place) keys(more ...string) []string {
	return append([]string{at.record, at.text}, more...)
}

// known adds the key of the server's identity to those of a script that looks at
// it, if there is a quarantine.
func (s *Store) known(at place, keys []string) []string {
	if s.quarantine > 0 {
		keys = append(keys, at.server)
	}
	return keys
}

// neighbour returns the beginning of keys that are in the same slot of a cluster as key.
func neighbour(key string) string {
	if tagged(key) {
		return key + ":"
	}
	return "{" + key + "}"
}

// tagged reports whether only a part of a key is hashed: the text between the first { and the first }
// after it (Redis Cluster specification, "Hash tags"). A key that is hashed whole and has a } has no
// neighbour.
func tagged(key string) bool {
	_, rest, ok := strings.Cut(key, "{")
	return ok && strings.Index(rest, "}") > 0
}
