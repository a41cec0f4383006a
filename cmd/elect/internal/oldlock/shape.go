package oldlock

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"
)

// A shape is what the value of a Redis key looks like.
type shape struct {
	kind  string
	value bool   // the value may be there for others to read
	note  string // to know about it
	why   string // it coexists with limits, or never
	never bool
}

// shapeOf recognises the values that lock libraries write. Whatever is left is
// some program's SET NX.
func shapeOf(value string) shape {
	switch {
	case isBase64(value, base64.StdEncoding.Strict(), 24):
		return shape{kind: "redsync", why: "only if it has one pool: with several it needs a majority of their servers, which takes two locks for a while"}
	case isKVTools(value):
		return shape{kind: "kvtools/redis with its JSONCodec", why: "its program cannot read other values than its own, and spins on a record", never: true}
	case isShedLock(value):
		return shape{kind: "ShedLock", why: "only if it was made with safeUpdate(true): without, its extends and releases overwrite and remove whatever is there"}
	case isUUID(value):
		return shape{kind: "SET NX PX with a random token, as redis-py's Lock, node-redlock and programs of one's own write it"}
	case isRedislock(value):
		return shape{kind: "redislock"}
	}
	return shape{kind: "SET NX PX of a program's own", value: true, note: bareDelete}
}

// bareDelete is what to know about a program of one's own.
const bareDelete = "; if it releases by a bare DEL, one that comes late removes a candidate's record, and the leader steps down"

// isBase64 reports whether s has that length and is 16 bytes in the encoding.
func isBase64(s string, encoding *base64.Encoding, length int) bool {
	if len(s) != length {
		return false
	}
	b, err := encoding.DecodeString(s)
	return err == nil && len(b) == 16
}

// isRedislock reports whether s begins with 16 random bytes as redislock writes
// them; metadata follows without a separator. Names of hosts, which may be as
// long, are seldom of both cases.
func isRedislock(s string) bool {
	const token = 22
	if len(s) < token {
		return false
	}
	head := s[:token]
	return isBase64(head, base64.RawURLEncoding.Strict(), token) &&
		strings.ToLower(head) != head && strings.ToUpper(head) != head
}

// isKVTools reports whether s is what the JSONCodec of kvtools writes.
func isKVTools(s string) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(s), &fields) != nil {
		return false
	}
	for _, name := range []string{"Key", "Value", "LastIndex"} {
		if _, ok := fields[name]; !ok {
			return false
		}
	}
	return true
}

// isShedLock reports whether s is ADDED:<time>@<host>:<uuid>.
func isShedLock(s string) bool {
	return strings.HasPrefix(s, "ADDED:") && strings.Contains(s, "@")
}

// isUUID reports whether s is a UUID, with or without dashes, or as many
// hexadecimal digits or more.
func isUUID(s string) bool {
	return regexp.MustCompile(`^([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{32,64})$`).MatchString(s)
}
