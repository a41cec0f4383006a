package memkv_test

import (
	"context"
	"fmt"

	"github.com/electkv/election"
	memkv "github.com/electkv/election/backends/mem"
)

// Goroutines of one process elect one of themselves, in a test for example.
func Example() {
	candidate, err := election.New(memkv.New(), "billing", &election.Options{ID: "a"})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = candidate.Run(context.Background(), func(_ context.Context, term *election.Term) error {
		fmt.Println("leads:", term.Err() == nil)
		return nil
	})
	fmt.Println(err)
	// Output:
	// leads: true
	// <nil>
}
