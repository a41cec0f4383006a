package filekv

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

const (
	// longName is the length from which on escaped names are cut, well below
	// the 255 bytes of a file name.
	longName = 200
	// cutName is what remains of a long name in front of its hash.
	cutName = 130
)

// escape returns the name in lower-case ASCII without anything that means
// something in a path, one to one. Upper-case letters are escaped for the sake
// of file systems that ignore case.
func escape(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if plain(c) || c == '.' && 0 < i && i < len(name)-1 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02x", c)
	}
	return b.String()
}

func plain(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

// shorten returns a file name for an escaped name: itself, or its beginning and
// a hash. Escaped names hold no "~", so the two kinds do not meet.
func shorten(escaped string) string {
	if len(escaped) <= longName {
		return escaped
	}
	return fmt.Sprintf("%s~%x", escaped[:cutName], sha256.Sum256([]byte(escaped)))
}
