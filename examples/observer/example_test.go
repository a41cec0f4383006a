package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/electkv/election"
	memkv "github.com/electkv/election/backends/mem"
)

func Example() {
	store := memkv.New()
	candidate, err := election.New(store, "jobs", &election.Options{ID: "one", Value: "10.0.0.7:8080"})
	if err != nil {
		panic(err)
	}
	term, err := candidate.Campaign(context.Background())
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancelCause(context.Background())
	err = observe(ctx, store, "jobs", func(s string) {
		fmt.Println(s)
		if term.Err() != nil {
			stop(errors.New("enough for an example"))
		} else if err := term.Resign(ctx); err != nil {
			panic(err)
		}
	})
	fmt.Println(err)
	// Output:
	// one leads under token 1, and says "10.0.0.7:8080"
	// nobody leads
	// election: watch "jobs": enough for an example
}
