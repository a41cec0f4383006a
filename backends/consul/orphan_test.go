//go:build unix

package consulkv_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/electkv/election/kv"
)

// lives is how many TTLs a record lives that nobody refreshes.
const lives = 2

// A key may have 4 KiB, and a server takes transactions of 512 KiB.
func TestWhatWasLeftBehindAtManyLongKeysFades(t *testing.T) {
	t.Parallel()
	const n = 140
	inTime(t, func(ttl time.Duration) bool {
		s, _, requests := openAs(t, options)
		var left []kv.Held
		for range n {
			rec, name := signed("v", ttl), newName()
			rec.Shared = true
			name += strings.Repeat("x", 4<<10-len(name))
			left = append(left, kv.Held{Name: name, Record: create(t, s, name, rec)})
		}
		var other []kv.Held
		for due := after(lives * ttl); !due(); time.Sleep(ttl / 4) { // a create renews, and looks at nothing
			other = crowdOf(t, s, 1, ttl)
		}
		requests.refuse(func(req *http.Request) error {
			assert.Less(t, req.ContentLength, int64(512<<10))
			return nil
		})
		return other[0].Record.Lease == left[0].Record.Lease && goesOn(t, s, other, func() bool {
			for len(left) > 0 && vacant(t, s, left[0].Name) {
				left = left[1:]
			}
			return len(left) == 0
		})
	})
}
