package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	filekv "github.com/electkv/election/backends/file"
	memkv "github.com/electkv/election/backends/mem"
)

func Example() {
	store := memkv.New()
	first, second := &service{store: store}, &service{store: store}
	server := httptest.NewServer(first)
	defer server.Close()
	first.url = server.URL
	other := httptest.NewServer(second)
	defer other.Close()
	ask(other.URL)

	ctx, cancel := context.WithCancel(context.Background())
	go first.campaign(ctx)
	for !first.leads() {
		time.Sleep(time.Millisecond)
	}
	ask(other.URL)
	cancel()
	// Output:
	// nobody leads yet: try again
	// served under token 1
}

func TestTheSafeIsFreeWhenTheLeaderHasStopped(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "http")
	require.NoError(t, exec.Command("go", "build", "-o", program, ".").Run())
	store, err := filekv.New(filepath.Join(dir, "store"), nil)
	require.NoError(t, err)
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		leader := exec.Command(program, "-dir", filepath.Join(dir, "store"))
		require.NoError(t, leader.Start())
		t.Cleanup(func() { _ = leader.Process.Kill() })
		require.Eventually(t, func() bool {
			_, err := election.Current(t.Context(), store, "http")
			return err == nil
		}, 30*time.Second, 10*time.Millisecond)
		require.NoError(t, leader.Process.Signal(sig))
		require.NoError(t, leader.Wait(), "it stops in good order")
		_, err = election.Current(t.Context(), store, "http")
		require.ErrorIs(t, err, election.ErrNoLeader)
	}
}

func (s *service) leads() bool { s.mu.RLock(); defer s.mu.RUnlock(); return s.term != nil }

func ask(url string) {
	resp, err := http.Get(url)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	if _, err := io.Copy(os.Stdout, resp.Body); err != nil {
		fmt.Println(err)
	}
}
