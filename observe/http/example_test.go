package electionhttp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/observe/http"
)

// A service that answers for its candidate at /election, for load balancers and orchestrators.
func Example() {
	store := memkv.New() // in production, a store that the instances share
	candidate, err := election.New(store, "billing", &election.Options{ID: "host-7"})
	if err != nil {
		panic(err)
	}
	handler, err := electionhttp.New(candidate, store, nil)
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/election/", http.StripPrefix("/election", handler))
	server := httptest.NewServer(mux)
	defer server.Close()
	defer handler.Close() // before the server's Shutdown

	get := func(path string) {
		resp, err := http.Get(server.URL + path)
		if err != nil {
			panic(err)
		}
		defer resp.Body.Close()
		fmt.Println(path, resp.StatusCode)
	}
	get("/election/leader")
	err = candidate.Run(context.Background(), func(context.Context, *election.Term) error {
		get("/election/leader")
		get("/election/standby")
		return nil
	})
	if err != nil {
		panic(err)
	}
	get("/election/leader")
	get("/election/livez")
	// Output:
	// /election/leader 503
	// /election/leader 200
	// /election/standby 503
	// /election/leader 503
	// /election/livez 200
}
