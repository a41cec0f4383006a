package kv_test

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/electkv/election"
	memkv "github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
)

// counting counts who wants to have a safe.
type counting struct {
	*memkv.Queue // and not a kv.Store
	claims       atomic.Int64
}

func (c *counting) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	c.claims.Add(1)
	return c.Queue.Create(ctx, name, rec)
}

func (c *counting) Join(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	c.claims.Add(1)
	return c.Queue.Join(ctx, name, rec)
}

// A wrapper embeds the type of the store that it wraps, and so can do what that can.
func Example_wrapper() {
	store := &counting{Queue: memkv.NewQueue()}
	_, err := election.New(store, "billing", nil)
	fmt.Println(err)

	hidden := struct{ kv.Store }{store}
	_, err = election.New(hidden, "billing", nil)
	fmt.Println(err)
	// Output:
	// <nil>
	// election: struct { kv.Store } hides that candidates of the store that it wraps wait in line (kv.Queue): they would stand beside the line, and not be elected while others wait; give it Join and Stay, or embed the store's own type in place of kv.Store
}
