package main

import (
	"context"
	"errors"
	"fmt"

	memkv "github.com/electkv/election/backends/mem"
)

func Example() {
	ctx, cancel := context.WithCancelCause(context.Background())
	err := run(ctx, memkv.New(), func(ctx context.Context, token uint64) {
		fmt.Println("work under token", token)
		cancel(errors.New("enough for an example"))
		<-ctx.Done()
	})
	fmt.Println("returned:", err)
	// Output:
	// start
	// work under token 1
	// stopped: enough for an example
	// returned: enough for an example
}
