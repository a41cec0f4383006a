package lock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/lock"
)

// Do is the shortest way to do something that only one process may do at a time.
func ExampleMutex_Do() {
	m, err := lock.New(memkv.New(), "reports", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = m.Do(context.Background(), func(ctx context.Context, held *lock.Held) error {
		fmt.Println("at work until ctx ends, with token", held.Token())
		return ctx.Err()
	})
	fmt.Println(err)
	// Output:
	// at work until ctx ends, with token 1
	// <nil>
}

// TryLock is for those who have something better to do than to wait.
func ExampleMutex_TryLock() {
	store := memkv.New() // here in memory; processes share etcd, Consul or Redis
	ctx := context.Background()
	var mutexes []*lock.Mutex
	for _, id := range []string{"web-1", "web-2"} {
		m, err := lock.New(store, "reports", &lock.Options{ID: id})
		if err != nil {
			fmt.Println(err)
			return
		}
		mutexes = append(mutexes, m)
	}
	held, err := mutexes[0].TryLock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(held.Err(), held.Remaining() > 10*time.Second)

	_, err = mutexes[1].TryLock(ctx)
	fmt.Println(errors.Is(err, lock.ErrHeld))

	fmt.Println(held.Unlock(ctx))
	fmt.Println(held.Unlock(ctx))
	// Output:
	// <nil> true
	// true
	// <nil>
	// lock: "reports": lock: misuse: it was unlocked before
}
