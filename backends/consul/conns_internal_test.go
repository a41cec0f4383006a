package consulkv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"
)

// In a bubble, an instant is chosen in which nothing was refused for long.
func quiet() *connections {
	c := connectionsOf(nil)
	time.Sleep(longPolls * regain)
	return c
}

func TestAClientHasSoManyBlockingQueries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quiet()
		held := []*longPoll{}
		for range longPolls {
			p := c.hold(t.Context())
			require.NotNil(t, p)
			held = append(held, p)
		}
		require.Nil(t, c.hold(t.Context()))
		held[3].release()
		require.False(t, held[3].needed())
		held[3] = c.hold(t.Context())
		require.NotNil(t, held[3])
		for _, p := range held {
			p.release()
		}
	})
}

// errUnasked is what net/http makes of an answer that comes before the request.
var errUnasked error = &url.Error{Op: "Get", URL: "http://h", Err: errors.New("readLoopPeekFailLocked: %!w(<nil>)")}

func TestARefusedRequestEndsAllBlockingQueries(t *testing.T) {
	for what, refusal := range map[string]error{
		"429":                  api.StatusError{Code: http.StatusTooManyRequests, Body: "Your IP is issuing too many concurrent connections, please rate limit your calls"},
		"429 to a renewal":     errors.New("Unexpected response code: 429"),
		"429 to a transaction": errors.New("Failed request: Your IP is issuing too many concurrent connections, please rate limit your calls"),
		"429, not asked for":   errUnasked,
		"a connection cut":     &url.Error{Op: "Get", URL: "http://h", Err: errors.New("EOF")},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := quiet()
			one, two := c.hold(t.Context()), c.hold(t.Context())
			err := c.request(t.Context(), func(context.Context) error { return refusal })
			if errors.Is(refusal, errUnasked) {
				require.ErrorIs(t, err, errLimited)
				require.NotContains(t, err.Error(), "%!w")
			} else {
				require.ErrorIs(t, err, refusal, what)
			}
			for _, p := range []*longPoll{one, two} {
				require.ErrorIs(t, context.Cause(p.ctx), errNeeded, what)
				require.True(t, p.needed())
				p.release()
				require.True(t, p.needed(), "it is remembered why")
			}
			require.Nil(t, c.hold(t.Context()))
			time.Sleep(3 * regain)
			for n := range 4 {
				p := c.hold(t.Context())
				require.Equal(t, n < 3, p != nil, "one comes back each %v", regain)
				if p != nil {
					defer p.release()
				}
			}
		})
	}
}

// It had no effect. After any other error there may be one.
func TestARequestThatWasRefusedAConnectionIsMadeAgain(t *testing.T) {
	cut := &url.Error{Op: "Put", URL: "http://h", Err: io.EOF}
	for what, c := range map[string]struct {
		answers []error
		tries   int
		want    error
	}{
		"refused twice":         {answers: []error{errUnasked, api.StatusError{Code: http.StatusTooManyRequests}}, tries: 3},
		"refused again":         {answers: slices.Repeat([]error{errUnasked}, 100), tries: refusals, want: errLimited},
		"cut":                   {answers: []error{cut}, tries: 1, want: io.EOF},
		"refused and then cut":  {answers: []error{errUnasked, cut}, tries: 2, want: io.EOF},
		"an error of the agent": {answers: []error{api.StatusError{Code: 500}}, tries: 1, want: api.StatusError{Code: 500}},
	} {
		synctest.Test(t, func(t *testing.T) {
			conns, tries := quiet(), 0
			begin := time.Now()
			err := conns.request(t.Context(), func(context.Context) error {
				tries++
				if tries > len(c.answers) {
					return nil
				}
				return c.answers[tries-1]
			})
			require.ErrorIs(t, err, c.want, what)
			require.Equal(t, c.tries, tries, what)
			require.Less(t, time.Since(begin), time.Second, what)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		conns := quiet()
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		err := conns.request(ctx, func(context.Context) error { return errUnasked })
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, errLimited)
		require.Equal(t, 10*time.Millisecond, time.Since(begin))
	})
}

// Its connection would be closed, and the room for it be somebody else's.
func TestARefusalEndsNoBlockingQueryThatHasJustComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quiet()
		long := c.hold(t.Context())
		require.Equal(t, time.Hour, long.wait(time.Hour))
		refuse := func() {
			require.Error(t, c.request(t.Context(), func(context.Context) error { return errLimited }))
		}
		refuse()
		require.True(t, long.needed())
		long.release()
		time.Sleep(regain)
		back := c.hold(t.Context())
		require.Equal(t, trial, back.wait(time.Hour))
		refuse()
		require.NoError(t, back.ctx.Err(), "it ends by itself")
		c.starved()
		require.True(t, back.needed(), "it was the client that had no room")
		back.release()
	})
}

func TestAnAnswerEndsNoBlockingQuery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quiet()
		p := c.hold(t.Context())
		defer p.release()
		over, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, c.request(t.Context(), func(context.Context) error { return nil }))
		require.Error(t, c.request(t.Context(), func(context.Context) error { return api.StatusError{Code: 500} }))
		require.Error(t, c.request(t.Context(), func(context.Context) error { return errors.New("refused: no") }))
		require.Error(t, c.heed(over, &url.Error{Err: context.Canceled}), "the caller's own doing")
		require.NoError(t, p.ctx.Err())
	})
}

func TestThereAreFewRequestsForAWhileAfterARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quiet()
		atOnce := func() int {
			ctx, cancel := context.WithCancel(t.Context())
			var crowd sync.WaitGroup
			var inside atomic.Int64
			for range 2 * requests {
				crowd.Go(func() {
					_ = c.request(ctx, func(ctx context.Context) error {
						inside.Add(1)
						<-ctx.Done()
						return context.Cause(ctx)
					})
				})
			}
			synctest.Wait()
			n := inside.Load()
			cancel()
			crowd.Wait()
			return int(n)
		}
		require.Equal(t, requests, atOnce())
		c.starved()
		require.Equal(t, fewRequests, atOnce())
		time.Sleep(calm)
		require.Equal(t, requests, atOnce())
	})
}

func TestShortPollsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quiet()
		polled := func(within time.Duration) (n int64) {
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			var crowd sync.WaitGroup
			var inside, done atomic.Int64
			for range 1000 {
				crowd.Go(func() {
					for ctx.Err() == nil {
						_ = c.poll(ctx, func(context.Context) error {
							if inside.Add(1) > shortPolls {
								panic("too many at once")
							}
							time.Sleep(time.Millisecond)
							inside.Add(-1)
							done.Add(1)
							return nil
						})
					}
				})
			}
			crowd.Wait()
			return done.Load()
		}
		const while = 10 * time.Second
		n := polled(while)
		require.InDelta(t, pollBurst+int64(while/pollSpace), n, 10)
		c.starved()
		n = polled(calm)
		require.InDelta(t, int64(calm/pollSpaceCalm), n, 5)
		require.Positive(t, n, "it goes on all the same")
	})
}

// As a transport with MaxConnsPerHost does whose connections are all taken.
func TestARequestThatWaitsForAConnectionEndsAllBlockingQueries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for what, connects := range map[string]func(*httptrace.ClientTrace){
			"it has one":       func(trace *httptrace.ClientTrace) { trace.GotConn(httptrace.GotConnInfo{}) },
			"it looks for one": func(trace *httptrace.ClientTrace) { trace.DNSStart(httptrace.DNSStartInfo{}) },
			"it opens one":     func(trace *httptrace.ClientTrace) { trace.ConnectStart("tcp", "h:1") },
			"it has none":      nil,
		} {
			c := quiet()
			p := c.hold(t.Context())
			require.NoError(t, c.request(t.Context(), func(ctx context.Context) error {
				trace := httptrace.ContextClientTrace(ctx)
				trace.GetConn("h:1")
				time.Sleep(patience / 2)
				if connects != nil {
					connects(trace)
				}
				time.Sleep(patience)
				return nil
			}))
			require.Equal(t, connects == nil, p.needed(), what)
			p.release()
		}
	})
}

func TestTheStoresOfAClientShareItsConnections(t *testing.T) {
	one, err := api.NewClient(&api.Config{Address: "127.0.0.1:1"})
	require.NoError(t, err)
	two, err := api.NewClient(&api.Config{Address: "127.0.0.1:1"})
	require.NoError(t, err)
	require.Same(t, New(one, nil).conns, New(one, &Options{Prefix: "p"}).conns)
	require.Same(t, New(one, nil).conns, newRegister(one, &Options{}).cells.conns)
	require.NotSame(t, New(one, nil).conns, New(two, nil).conns)
	key := weak.Make(one)
	runtime.KeepAlive(one) // and no longer
	require.Eventually(t, func() bool {
		runtime.GC()
		_, known := perClient.Load(key)
		return !known
	}, time.Minute, time.Millisecond, "what nobody uses any more is forgotten")
	runtime.KeepAlive(two)
}

// net/http may close the connection of a request at the end of another.
func TestAPollThatLosesItsConnectionToTheEndOfAnotherIsMadeAgain(t *testing.T) {
	c, polls := connectionsOf(nil), 0
	require.NoError(t, c.poll(t.Context(), func(context.Context) error {
		if polls++; polls == 1 {
			return fmt.Errorf("Get: %w", errNeeded)
		}
		return nil
	}))
	require.Equal(t, 2, polls)
	require.True(t, c.refused.IsZero(), "the agent has refused nothing")
}

func TestPollsThatAreGivenUpLeaveNoDebt(t *testing.T) {
	c, now := connectionsOf(nil), time.Now()
	c.refused = now
	for range 100 {
		c.untilRead(now)
	}
	require.LessOrEqual(t, c.untilRead(now), (shortPolls+1)*pollSpaceCalm)
}
