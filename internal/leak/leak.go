// Package leak tells tests which goroutines were left behind. A library for it would be one more
// version that a backend raises for its users.
package leak

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// patience is how long goroutines may take to end after what they belong to.
const patience = 15 * time.Second

// Goroutines are those that there were at some time.
type Goroutines map[string]bool

// Before returns the goroutines that there are now.
func Before() Goroutines {
	there := make(Goroutines)
	for name := range stacks() {
		there[name] = true
	}
	return there
}

// Check fails the test if there are goroutines that were not there before, and do not end soon.
func (g Goroutines) Check(t testing.TB) {
	t.Helper()
	if left := g.left(patience); left != "" {
		t.Errorf("left behind:\n\n%s", left)
	}
}

// Main runs the tests of a package, and ends the process. It fails if the tests have left any
// goroutine behind.
func Main(m *testing.M) {
	before := Before()
	status := m.Run()
	if left := before.left(patience); status == 0 && left != "" {
		fmt.Printf("left behind:\n\n%s\n", left)
		status = 1
	}
	os.Exit(status) //nolint:forbidigo // this is the end of main
}

// left returns the stacks of the new goroutines that are still there after the wait.
func (g Goroutines) left(wait time.Duration) string {
	for end := time.Now().Add(wait); ; time.Sleep(10 * time.Millisecond) {
		var left []string
		for name, stack := range stacks() {
			if !g[name] {
				left = append(left, stack)
			}
		}
		if len(left) == 0 || time.Now().After(end) {
			return strings.Join(left, "\n\n")
		}
	}
}

// stacks returns the stacks of all goroutines but the caller's and that of the runtime which waits
// for signals, by their names, which are never used again.
func stacks() map[string]string {
	text := make([]byte, 1<<16)
	for {
		n := runtime.Stack(text, true)
		if n < len(text) {
			text = text[:n]
			break
		}
		text = make([]byte, 2*len(text))
	}
	byName := make(map[string]string)
	for i, stack := range strings.Split(string(text), "\n\n") {
		if i == 0 || strings.Contains(stack, "os/signal.loop") {
			continue
		}
		name, _, _ := strings.Cut(stack, " [")
		byName[name] = stack
	}
	return byName
}
