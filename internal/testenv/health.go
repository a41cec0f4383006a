//go:build unix

package testenv

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// await waits until check succeeds, and fails the test if it does not in
// startTimeout. The context bounds one look.
func await(t testing.TB, what string, check func(context.Context) error) {
	t.Helper()
	look := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		return check(ctx)
	}
	for end := time.Now().Add(startTimeout); ; time.Sleep(50 * time.Millisecond) {
		err := look()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("testenv: %s: not after %v: %v", what, startTimeout, err)
		}
	}
}

// accepts reports whether somebody listens at addr.
func accepts(ctx context.Context, addr string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return conn.Close()
}

// getJSON reads the answer to a GET, which must be 200, into answer. Neither it
// nor postJSON leaves a connection behind.
func getJSON(ctx context.Context, url string, answer any) error {
	return doJSON(ctx, http.MethodGet, url, nil, answer)
}

// postJSON reads the answer to a POST of body, which must be 200, into answer.
func postJSON(ctx context.Context, url, body string, answer any) error {
	return doJSON(ctx, http.MethodPost, url, []byte(body), answer)
}

func doJSON(ctx context.Context, method, url string, body []byte, answer any) error {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s: %.200s", method, url, resp.Status, text)
	}
	return json.Unmarshal(text, answer)
}
