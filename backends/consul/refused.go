package consulkv

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"
)

// errLimited is what the answer 429 means.
var errLimited = errors.New("rate limited: the agent takes no more connections from this address (its limits.http_max_conns_per_client)")

// plainly says what the answer to a connection too many means.
func plainly(err error) error {
	switch {
	case err == nil:
		return nil
	case unasked(err):
		return fmt.Errorf("%w: it closed the connection before the request was sent", errLimited)
	case tooMany(err):
		return fmt.Errorf("%w: %w", errLimited, err)
	}
	return err
}

// tooMany recognizes that answer. Of a renewal and of a transaction package api
// returns it as text only.
func tooMany(err error) bool {
	if status, ok := errors.AsType[api.StatusError](err); ok {
		return status.Code == http.StatusTooManyRequests
	}
	text := err.Error()
	return strings.HasSuffix(text, "response code: 429") || strings.Contains(text, "too many concurrent connections")
}

// unasked recognizes the same answer if it comes before the request, as Consul sends
// it: net/http has no error for that, and wraps none all the same.
func unasked(err error) bool {
	_, unheard := errors.AsType[*url.Error](err)
	return unheard && strings.HasSuffix(err.Error(), "%!w(<nil>)")
}

// refusesConnection reports whether a request may have found no room at the agent:
// it was answered so, or its connection was refused or cut, which is all that an
// agent can do before TLS is up.
func refusesConnection(err error) bool {
	_, unheard := errors.AsType[*url.Error](err)
	return unheard || errors.Is(err, errLimited)
}

// patience is how long a request waits for one of the client's connections, where
// the client opens no more, until it is taken to need one of a watch. Once it has
// one, the agent may take its time.
const patience = 100 * time.Millisecond

// traceConnection returns a context for one request. Starved is called if the
// request waits for a connection that others have: the client's transport may have
// a bound of its own (MaxConnsPerHost), of which we cannot know. Done ends that.
func traceConnection(ctx context.Context, starved func()) (_ context.Context, done func()) {
	var (
		mu      sync.Mutex
		over    bool
		timer   *time.Timer
		running sync.WaitGroup
	)
	wait := func(string) {
		mu.Lock()
		defer mu.Unlock()
		if timer == nil && !over {
			running.Add(1)
			timer = time.AfterFunc(patience, func() {
				defer running.Done()
				starved()
			})
		}
	}
	served := func() {
		mu.Lock()
		defer mu.Unlock()
		if !over && timer != nil && timer.Stop() {
			running.Done()
		}
		over = true
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:      wait,
		GotConn:      func(httptrace.GotConnInfo) { served() },
		DNSStart:     func(httptrace.DNSStartInfo) { served() }, // opens one
		ConnectStart: func(_, _ string) { served() },            // likewise
	})
	return ctx, func() {
		served()
		running.Wait()
	}
}
