// Package order has the orders of succession by name, as flags and the demo give
// them.
package order

import (
	"fmt"
	"slices"
	"strings"

	"github.com/electkv/election"
)

// A Name names an order of succession. It is a flag's value.
type Name string

// The orders. None is no heir: whoever comes first when the safe is vacant. The zero Name
// is what the library does by default.
const (
	None  Name = "none"
	First Name = "first"
	Rank  Name = "rank"
	Ring  Name = "ring"
	List  Name = "list"
)

// Names returns all orders, None first.
func Names() []string {
	return []string{string(None), string(First), string(Rank), string(Ring), string(List)}
}

// Succession returns the order, nil for None and the default.
func (n *Name) Succession() election.Succession {
	switch *n {
	case First:
		return election.FirstCome
	case Rank:
		return election.ByRank
	case Ring:
		return election.Ring
	case List:
		return election.ByList
	}
	return nil
}

// String implements pflag.Value.
func (n *Name) String() string { return string(*n) }

// Type implements pflag.Value.
func (n *Name) Type() string { return "order" }

// Set implements pflag.Value.
func (n *Name) Set(s string) error {
	if names := Names(); !slices.Contains(names, s) {
		last := len(names) - 1
		return fmt.Errorf("use %s or %s", strings.Join(names[:last], ", "), names[last])
	}
	*n = Name(s)
	return nil
}
