package electionotel_test

import (
	"context"
	"fmt"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/observe/otel"
)

// The global providers take what one candidate does. A program that sets none, as this one, is told
// nothing.
func Example() {
	telemetry, err := electionotel.New(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	candidate, err := election.New(memkv.New(), "billing", &election.Options{Hooks: telemetry.Hooks()})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = candidate.Run(context.Background(), func(_ context.Context, term *election.Term) error {
		fmt.Println("leads")
		return nil
	})
	fmt.Println(err)
	// Output:
	// leads
	// <nil>
}
