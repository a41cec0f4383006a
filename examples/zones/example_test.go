package main

import (
	"context"
	"fmt"

	memkv "github.com/electkv/election/backends/mem"
)

func Example() {
	inAll := memkv.New()
	leads := make(chan string, 4)
	start := func(zone string) (stop func()) {
		ctx, cancel := context.WithCancel(context.Background())
		over := make(chan error)
		go func() {
			over <- run(ctx, zone, memkv.New(), inAll, func(ctx context.Context, what string) error {
				leads <- zone + " leads " + what
				<-ctx.Done()
				return nil
			})
		}()
		return func() {
			cancel()
			<-over
		}
	}
	tell := func(want string) {
		for said := range leads {
			if said == want {
				fmt.Println(said)
				return
			}
		}
	}
	stopA := start("a")
	tell("a leads all zones")
	stopB := start("b")
	tell("b leads zone b")
	stopA()
	tell("b leads all zones")
	stopB()
	// Output:
	// a leads all zones
	// b leads zone b
	// b leads all zones
}
