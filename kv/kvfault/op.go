package kvfault

import "fmt"

// An Op is an operation of a store that faults can strike.
type Op int

// The operations.
const (
	Create Op = iota
	Swap
	Refresh
	Delete
	Get
	Watch
	Join
	Stay
	HandOver

	ops = iota
)

// String returns the operation in lower case.
func (op Op) String() string {
	names := [ops]string{"create", "swap", "refresh", "delete", "get", "watch", "join", "stay", "handover"}
	if op < 0 || op >= ops {
		return fmt.Sprintf("Op(%d)", int(op))
	}
	return names[op]
}
