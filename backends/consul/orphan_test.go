//go:build unix

package consulkv_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/consul"
	"github.com/electkv/election/internal/testenv"
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

// Without the rights, nobody can say what is at its key, or remove it.
func TestASessionTakesNoMoreRecordsOnceWhatWasLeftBehindCannotBeRemoved(t *testing.T) {
	addr := testenv.StartConsulWithACL(t).Addr()
	root, _ := dialCounted(t, addr, &api.Config{Token: testenv.ConsulManagementToken})
	eventually(t, func() error {
		_, err := root.Agent().Self()
		return err
	})
	for _, right := range []string{"read", "deny"} {
		t.Run(right, func(t *testing.T) {
			t.Parallel()
			inTime(t, func(ttl time.Duration) bool {
				rules := func(key, right string) string {
					return `key_prefix "" { policy = "write" } session_prefix "" { policy = "write" } key "` + key + `" { policy = "` + right + `" }`
				}
				name := newName()
				policy, _, err := root.ACL().PolicyCreate(&api.ACLPolicy{Name: newName(), Rules: rules(name, "write")}, nil)
				require.NoError(t, err)
				token, _, err := root.ACL().TokenCreate(&api.ACLToken{Policies: []*api.ACLLink{{ID: policy.ID}}}, nil)
				require.NoError(t, err)
				client, _ := dialCounted(t, addr, &api.Config{Token: token.SecretID})
				s := consulkv.New(client, options)
				left := signed("left", ttl)
				left.Shared = true
				left = create(t, s, name, left)
				policy.Rules = rules(name, right)
				_, _, err = root.ACL().PolicyUpdate(policy, nil)
				require.NoError(t, err)

				living := crowdOf(t, s, 2, ttl)
				if living[0].Record.Lease != left.Lease {
					return false // this was too slow to renew it
				}
				if !goesOn(t, s, living, after((lives+3)*ttl)) { // two looks at it, a TTL apart
					return false
				}
				began := time.Now()
				other := crowdOf(t, s, 1, ttl)[0]
				require.NotEqual(t, left.Lease, other.Record.Lease)
				session := pair(t, root, name).Session
				var lost []error
				for _, r := range living {
					lost = append(lost, s.Delete(t.Context(), r.Name, r.Record))
				}
				if time.Since(began) > ttl*9/10 {
					return false
				}
				require.Equal(t, left.Lease, session, "those that live keep their terms")
				require.NoError(t, errors.Join(lost...))
				trusted := consulkv.New(root, options)
				return goesOn(t, s, []kv.Held{other}, func() bool { return vacant(t, trusted, name) })
			})
		})
	}
}
