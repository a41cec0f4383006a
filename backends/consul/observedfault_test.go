//go:build unix

package consulkv_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/consul"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

func TestAnObservedWriteWhoseReplyIsLostIsUnknownAndItsRecordIsThere(t *testing.T) {
	t.Parallel() // it mostly waits
	proxy := testenv.NewProxy(t, testenv.Consul(t))
	client, requests := dialCounted(t, proxy.Addr(), nil)
	s := consulkv.NewObserved(client, nil)
	name := newName()
	after := func(write func(ctx context.Context) error) (kv.Record, error) {
		t.Helper()
		losesReply(t, proxy, requests, write)
		return s.Get(within(t, time.Minute), name)
	}
	rec := signed("v", time.Minute)
	got, err := after(func(ctx context.Context) error { _, err := s.Create(ctx, name, rec); return err })
	require.NoError(t, err)
	require.Equal(t, rec.Signature, got.Signature)
	rec = got
	got, err = after(func(ctx context.Context) error { _, err := s.Refresh(ctx, name, rec); return err })
	require.NoError(t, err)
	require.Equal(t, rec, got)
	got, err = after(func(ctx context.Context) error {
		_, err := s.Swap(ctx, name, rec, kv.Record{Signature: rec.Signature, Value: "published"})
		return err
	})
	require.NoError(t, err)
	require.Equal(t, "published", got.Value)
	require.Equal(t, rec.Token, got.Token)
	rec, err = s.Refresh(within(t, time.Minute), name, got)
	require.NoError(t, err, "whoever finds its signature can go on with the record")
	require.Equal(t, got, rec)
	_, err = after(func(ctx context.Context) error { return s.Delete(ctx, name, rec) })
	require.ErrorIs(t, err, kv.ErrVacant)
}

// The second transaction cannot tell the first one's record from an older one of the
// signature, and does not call it its own.
func TestAnObservedWriteThatIsSentTwiceIsCarriedOutOnce(t *testing.T) {
	s, _, requests := observed(t)
	name, rec := newName(), signed("v", time.Minute)
	twice(t, requests)
	_, err := s.Create(t.Context(), name, rec)
	require.ErrorIs(t, err, kv.ErrHeld)
	rec, err = s.Get(t.Context(), name)
	require.NoError(t, err)
	twice(t, requests)
	got, err := s.Refresh(t.Context(), name, rec)
	require.NoError(t, err)
	require.Equal(t, rec, got)
	twice(t, requests)
	_, err = s.Swap(t.Context(), name, rec, kv.Record{Signature: rec.Signature, Value: "published"})
	require.ErrorIs(t, err, kv.ErrStale)
	got, err = s.Refresh(t.Context(), name, rec)
	require.NoError(t, err, "the record is the owner's still")
	require.Equal(t, "published", got.Value)
	require.Equal(t, rec.Token, got.Token)
}

// A departure does something once a transaction was refused.
type departure struct {
	next    http.RoundTripper
	refused atomic.Int64
	do      func()
}

func (d *departure) RoundTrip(req *http.Request) (*http.Response, error) {
	answer, err := d.next.RoundTrip(req)
	if err == nil && answer.StatusCode == http.StatusConflict {
		d.refused.Add(1)
		d.do()
	}
	return answer, err
}

// What has kept a create out is gone when it looks what that was.
func TestACreateThatMeetsARecordWhichGoesIsCarriedOut(t *testing.T) {
	s, client, requests := observed(t)
	other, _, _ := observed(t)
	name := newName()
	create(t, other, name, signed("goes", time.Minute))
	leave := &departure{next: requests.next, do: func() { operator{client}.remove(t, name) }}
	requests.next = leave
	rec := create(t, s, name, signed("v", time.Minute))
	require.EqualValues(t, 1, leave.refused.Load())
	got, err := other.Get(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, rec, got)
}

func TestEveryObservedOperationOnAPausedServerReturnsWithItsContext(t *testing.T) {
	t.Parallel() // it mostly waits
	server := testenv.StartConsul(t)
	s := consulkv.NewObserved(dial(t, server.Addr()), nil)
	name := newName()
	rec := create(t, s, name, signed("v", time.Hour))
	server.Pause()
	for what, call := range map[string]func(ctx context.Context) error{
		"create": func(ctx context.Context) error {
			_, err := s.Create(ctx, newName(), signed("v", time.Minute))
			return err
		},
		"publish": func(ctx context.Context) error {
			_, err := s.Swap(ctx, name, rec, kv.Record{Signature: rec.Signature, Value: "changed"})
			return err
		},
		"refresh": func(ctx context.Context) error { _, err := s.Refresh(ctx, name, rec); return err },
		"get":     func(ctx context.Context) error { _, err := s.Get(ctx, name); return err },
		"watch": func(ctx context.Context) (last error) {
			for _, last = range s.Watch(ctx, name) {
			}
			return last
		},
	} {
		start := time.Now()
		why := errors.New("the caller thought better of it")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, why)
		err := call(ctx)
		cancel()
		require.ErrorIs(t, err, why, what)
		unknown(t, err)
		require.Less(t, time.Since(start), 30*time.Second, what)
	}
	server.Continue()
	eventually(t, func() error { _, err := s.Refresh(within(t, 5*time.Second), name, rec); return err })
	server.Restart()
	eventually(t, func() error { _, err := s.Refresh(within(t, 5*time.Second), name, rec); return err })
	got, err := s.Get(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, rec.Token, got.Token)
}

// Which of the two operations of a transaction was refused tells a lost race from a
// token that may not write.
func TestADeniedObservedCallIsUnknown(t *testing.T) {
	addr := testenv.StartConsulWithACL(t).Addr()
	root, _ := dialCounted(t, addr, &api.Config{Token: testenv.ConsulManagementToken})
	trusted := consulkv.NewObserved(root, nil)
	name := newName()
	var rec kv.Record
	eventually(t, func() (err error) {
		rec, err = trusted.Create(t.Context(), name, signed("v", time.Minute))
		return err
	})
	for what, rules := range map[string]string{"nothing": "", "reading": `key_prefix "" { policy = "read" }`} {
		client, secret := as(t, root, addr, rules)
		s := consulkv.NewObserved(client, nil)
		_, created := s.Create(t.Context(), newName(), signed("v", time.Minute))
		_, published := s.Swap(t.Context(), name, rec, kv.Record{Signature: rec.Signature, Value: "changed"})
		_, refreshed := s.Refresh(t.Context(), name, rec)
		for op, err := range map[string]error{
			"create": created, "publish": published, "refresh": refreshed, "delete": s.Delete(t.Context(), name, rec),
		} {
			unknown(t, err)
			require.Regexp(t, "(?i)403|permission denied", err.Error(), "%s with %s", op, what)
			require.NotContains(t, err.Error(), secret)
		}
		got, err := trusted.Refresh(t.Context(), name, rec)
		require.NoError(t, err)
		require.Equal(t, rec, got)
	}

	client, _ := as(t, root, addr, `key_prefix "elections/" { policy = "write" }`)
	s := consulkv.NewObserved(client, &consulkv.ObservedOptions{Prefix: "elections/"})
	eventually(t, func() (err error) { // until the servers know the policy
		rec, err = s.Create(t.Context(), name, signed("v", time.Minute))
		return err
	})
	_, err := s.Refresh(t.Context(), name, rec)
	require.NoError(t, err)
	require.NoError(t, s.Delete(t.Context(), name, rec))
}

func TestANoteCountsIntoTheSizeOfAnObservedRecord(t *testing.T) {
	s, _, _ := observed(t)
	large := signed(strings.Repeat("x", 200<<10), time.Minute)
	large.Note = large.Value
	_, err := s.Create(t.Context(), newName(), large)
	require.ErrorIs(t, err, kv.ErrInvalid)
	require.ErrorContains(t, err, "want up to 327680")
}
