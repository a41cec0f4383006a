package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	memkv "github.com/electkv/election/backends/mem"
)

func Example() {
	runs := 0
	err := run(context.Background(), memkv.New(), time.Millisecond, func(context.Context, uint64) error {
		if runs++; runs > 2 {
			return errors.New("enough for an example")
		}
		fmt.Println("job done")
		return nil
	})
	fmt.Println(err)
	// Output:
	// job done
	// job done
	// enough for an example
}
