package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

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
	for first.term.Load() == nil {
		time.Sleep(time.Millisecond)
	}
	ask(other.URL)
	cancel()
	// Output:
	// nobody leads yet: try again
	// served under token 1
}

func ask(url string) {
	resp, err := http.Get(url)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	fmt.Print(string(body))
	if err != nil {
		fmt.Println(err)
	}
}
