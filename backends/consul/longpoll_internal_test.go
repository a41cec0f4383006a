package consulkv

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// get makes one request, and returns when its answer was read.
func get(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// Blocking queries are answered, without a body, at the moment at which they are to make room.
func TestABlockingQueryThatEndsTakesNoOtherRequestAlong(t *testing.T) {
	answer := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/long" {
			<-answer
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	transport := &http.Transport{MaxIdleConnsPerHost: 4, MaxConnsPerHost: 1}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	answered := 0
	for range 3000 {
		c := connectionsOf(nil)
		long := c.hold(t.Context())
		ended := make(chan error, 1)
		go func() {
			err := get(long.ctx, client, server.URL+"/long")
			long.release()
			ended <- err
		}()
		answer <- struct{}{}
		go c.starved()
		require.NoError(t, get(t.Context(), client, server.URL+"/other"))
		if <-ended == nil {
			answered++
		}
	}
	t.Logf("%d of 3000 were answered all the same", answered)
}
