//go:build unix

package consulkv

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

var errRefused = errors.New("refused by the test")

// A doorman lets no transaction through that unlocks a key.
type doorman struct{}

func (doorman) RoundTrip(req *http.Request) (*http.Response, error) {
	body := make([]byte, req.ContentLength)
	if req.URL.Path == "/v1/txn" {
		copied, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		if _, err := copied.Read(body); err == nil && strings.Contains(string(body), "unlock") {
			return nil, errRefused
		}
	}
	return http.DefaultTransport.RoundTrip(req)
}

// The terms beside it end, and so it does, too.
func TestASessionWithWhatCannotBeLetGoIsLeftToExpire(t *testing.T) {
	t.Parallel()
	for ttl := time.Second; !endsBesideWhatIsStuck(t, ttl); ttl *= 2 {
		require.Less(t, ttl, 20*time.Second, "this machine is too busy to refresh anything before it fades")
	}
}

// endsBesideWhatIsStuck reports whether all refreshes were in time.
func endsBesideWhatIsStuck(t *testing.T, ttl time.Duration) bool {
	client, err := api.NewClient(&api.Config{Address: testenv.Consul(t), HttpClient: &http.Client{Transport: doorman{}}})
	require.NoError(t, err)
	s := New(client, &Options{MinTTL: time.Second})
	create := func() (string, kv.Record) {
		name := "consulkv-" + rand.Text()
		rec, err := s.Create(t.Context(), name, kv.Record{Signature: rand.Text(), TTL: ttl, Shared: true})
		require.NoError(t, err)
		return name, rec
	}
	left, leftRec := create()
	last := time.Now()
	living, rec := create()
	if rec.Lease != leftRec.Lease {
		return false // the session was granted or renewed too late
	}
	refresh := func() error {
		time.Sleep(ttl / 10)
		_, err := s.Refresh(t.Context(), living, rec)
		return err
	}
	for !stuck(&s.sharing, rec.Lease, left) {
		began := time.Now()
		err := refresh()
		if time.Since(last) > ttl*9/10 {
			return false
		}
		require.NoError(t, err)
		last = began
	}
	for end := last.Add(10 * ttl); err == nil; err = refresh() {
		last = time.Now()
		require.True(t, last.Before(end), "it is refreshed all the time")
	}
	if !errors.Is(err, errRefused) {
		return false // a session that was not renewed in time says that
	}
	require.ErrorContains(t, err, left)
	there, err := s.letGo(t.Context(), rec.Lease, left)
	if time.Since(last) > ttl*9/10 {
		return false
	}
	require.ErrorIs(t, err, errRefused)
	require.True(t, there)
	for end := time.Now().Add(4 * ttl); time.Now().Before(end); {
		began := time.Now()
		require.Error(t, refresh())
		if time.Since(last) > ttl*9/10 {
			return false
		}
		last = began
	}
	_, err = s.Get(t.Context(), living)
	if time.Since(last) > ttl*9/10 {
		return false
	}
	require.NoError(t, err, "it is kept while work goes on")
	require.Eventually(t, func() bool {
		_, err := s.Get(context.Background(), left)
		return errors.Is(err, kv.ErrVacant)
	}, time.Minute, ttl/4)
	return true
}

// stuck reports whether a key cannot be let go. From then on, that has been so for long.
func stuck(s *sharing, session, key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.sessions[session].backs[key]
	if b == nil || b.stuck.IsZero() {
		return false
	}
	b.stuck = b.stuck.Add(-mostStuck * s.sessions[session].ttl)
	return true
}
