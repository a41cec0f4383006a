package kvtest_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/electkv/election/kv/kvtest"
)

// A verdict is a testing.TB that notes failures in place of failing.
type verdict struct {
	testing.TB

	mu       sync.Mutex
	failed   bool
	text     strings.Builder
	cleanups []func()
}

// judge runs a case in a bubble, and returns whether it passed and what it said.
func judge(t *testing.T, c kvtest.Case, backend func() kvtest.Backend) (passed bool, text string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		v := &verdict{TB: t}
		v.run(c, backend())
		time.Sleep(time.Hour) // what is left behind may end
		passed, text = !v.Failed(), v.text.String()
	})
	return passed, text
}

// run runs the case in a goroutine that FailNow can end.
func (v *verdict) run(c kvtest.Case, b kvtest.Backend) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer v.cleanUp()
		c.Run(v, b)
	}()
	<-done
}

func (v *verdict) cleanUp() {
	for _, f := range slices.Backward(v.cleanups) {
		f()
	}
}

func (v *verdict) Cleanup(f func()) { v.cleanups = append(v.cleanups, f) }

func (v *verdict) Helper() {}

func (v *verdict) Fail() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.failed = true
}

func (v *verdict) Failed() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.failed
}

func (v *verdict) Logf(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	fmt.Fprintf(&v.text, format+"\n", args...)
}

func (v *verdict) Errorf(format string, args ...any) {
	v.Logf(format, args...)
	v.Fail()
}

func (v *verdict) FailNow() {
	v.Fail()
	runtime.Goexit()
}
