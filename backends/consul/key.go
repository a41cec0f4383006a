package consulkv

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/electkv/election/kv"
)

// longestKey leaves room for a key, percent-encoded, in the line of a request.
const longestKey = 4 << 10

// checkKey refuses the keys that are not kept apart from others on their way to
// the store. A Txn carries its keys as JSON, which turns bytes that are no UTF-8
// into one and the same character. A read carries its key in the path of a URL:
// the client takes a slash off its front, the server resolves "//", "." and
// "..", and refuses what cannot be printed.
func checkKey(key string) error {
	switch {
	case len(key) > longestKey:
		return fmt.Errorf("a key of %d bytes: want up to %d: %w", len(key), longestKey, kv.ErrInvalid)
	case !utf8.ValidString(key):
		return fmt.Errorf("key %q is no UTF-8: %w", key, kv.ErrInvalid)
	case strings.ContainsFunc(key, unprintable):
		return fmt.Errorf("key %q: Consul takes printable characters only: %w", key, kv.ErrInvalid)
	case strings.HasSuffix(key, companionSuffix):
		return fmt.Errorf("key %q: a key with %q at the end belongs to the safe without it: want another name: %w",
			key, companionSuffix, kv.ErrInvalid)
	case strings.HasPrefix(key, "/"):
		return fmt.Errorf("key %q: Consul takes no slash at the front: %w", key, kv.ErrInvalid)
	case path.Clean("/"+key) != "/"+strings.TrimSuffix(key, "/"):
		return fmt.Errorf(`key %q: Consul resolves "//", "." and ".." in a key: want it without: %w`, key, kv.ErrInvalid)
	}
	return nil
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }
