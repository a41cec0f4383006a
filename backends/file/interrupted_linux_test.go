package filekv

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A signal cuts a listing of the folder in two, and what is renamed in between may be in
// neither half.
func TestAReaderMissesNoPageThatIsTurnedWhileItIsInterrupted(t *testing.T) {
	f := newFolder(t)
	next := turn{text: []byte("text"), still: always}
	require.NoError(t, f.turn(f.mustRead(t), next))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	reader := unix.Gettid()
	var (
		others sync.WaitGroup
		done   atomic.Bool
	)
	others.Go(func() {
		defer done.Store(true)
		for turns := 0; turns < 5000 && !t.Failed(); turns++ {
			found, err := f.read()
			assert.NoError(t, err)
			assert.NoError(t, f.turn(found, next))
		}
	})
	others.Go(func() {
		for !done.Load() {
			assert.NoError(t, unix.Tgkill(os.Getpid(), reader, unix.SIGURG)) // the Go runtime does, to preempt
		}
	})
	for !done.Load() && !t.Failed() {
		if found, err := f.read(); assert.NoError(t, err) {
			assert.NotZero(t, found.number)
			assert.NotEmpty(t, found.text)
		}
	}
	others.Wait()
}
