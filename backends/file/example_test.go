package filekv_test

import (
	"context"
	"fmt"
	"os"

	"github.com/electkv/election"
	filekv "github.com/electkv/election/backends/file"
)

// Processes of one host elect one of themselves by a directory that all of them may write to.
func Example() {
	dir, err := os.MkdirTemp("", "elections-") // a service uses /var/lib/NAME, say
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	store, err := filekv.New(dir, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	candidate, err := election.New(store, "billing", &election.Options{ID: "a"})
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
