package fence_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/electkv/election/fence"
)

// A service keeps its largest token in a file beside its data, and refuses the
// requests of those who do not lead any more.
func Example() {
	dir, err := os.MkdirTemp("", "billing")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	f, err := fence.Open(filepath.Join(dir, "fence"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()

	var total int
	handle := func(token uint64, amount int) error { // the token came with the request
		return f.Do(token, func() error {
			total += amount
			return nil
		})
	}
	fmt.Println(handle(33, 10))
	fmt.Println(handle(34, 20)) // somebody else leads now
	err = handle(33, 40)        // the old leader wakes
	fmt.Println(errors.Is(err, fence.ErrStale), err)
	fmt.Println(total)
	// Output:
	// <nil>
	// <nil>
	// true fence: stale token 33: 34 was admitted before
	// 30
}
