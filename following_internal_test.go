package election

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

var errBroken = errors.New("the connection is broken")

// A frail is what a following begins. It tells of the present state, and after a while
// of an error.
type frail struct {
	start time.Time
	after time.Duration // how long it lasts; negative is for ever
	tell  func(kv.Record, error)

	mu    sync.Mutex
	begun []time.Duration
	open  int
	most  int // that were open at once
}

func (s *frail) begin(tell func(kv.Record, error)) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = append(s.begun, time.Since(s.start))
	s.open++
	s.most = max(s.most, s.open)
	present, after := kv.Record{Token: uint64(len(s.begun))}, s.after
	var over sync.WaitGroup
	over.Go(func() {
		tell(present, nil)
		tell(kv.Record{}, kv.ErrVacant)
		if after >= 0 {
			time.Sleep(after)
			tell(kv.Record{}, errBroken)
		}
	})
	var once sync.Once
	return func() {
		over.Wait()
		once.Do(func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.open--
		})
	}
}

// change has what begins from now on last for so long.
func (s *frail) change(after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.after = after
}

const (
	least = 100 * time.Millisecond
	calm  = 2 * time.Second
)

// follow begins a following without jitter.
func (s *frail) follow() (stop func()) {
	s.start = time.Now()
	still := func(n time.Duration) time.Duration { return n - 1 }
	f := &following{begin: s.begin, tell: s.tell, calm: calm, retry: backoff{least: least, most: calm, jitter: still}}
	f.start()
	return f.stop
}

func TestAFollowingThatBreaksBeginsAnewAfterPausesThatGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []uint64
		s := &frail{tell: func(rec kv.Record, err error) {
			if err == nil {
				seen = append(seen, rec.Token)
			}
		}}
		stop := s.follow()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		ms := time.Millisecond
		require.Equal(t, []time.Duration{0, 100 * ms, 300 * ms, 700 * ms, 1500 * ms, 3100 * ms, 5100 * ms, 7100 * ms, 9100 * ms}, s.begun)
		require.Equal(t, []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9}, seen, "the present state each time")
		require.Equal(t, 1, s.most, "one at a time")

		s.change(calm + 1)
		time.Sleep(1100*ms + calm + 1 + least) // the next begins, and is calm for long enough
		synctest.Wait()
		require.Equal(t, []time.Duration{11100 * ms, 11100*ms + calm + 1 + least}, s.begun[9:], "the first pause is short again")
		stop()
		require.Zero(t, s.open)
	})
}

func TestStopEndsAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		s := &frail{tell: func(kv.Record, error) { calls++ }}
		stop := s.follow()
		time.Sleep(least / 2)
		synctest.Wait()
		stop()
		require.Zero(t, s.open)
		require.Equal(t, least/2, time.Since(s.start), "it does not wait for the pause to end")
		stop()
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, 3, calls)
		require.Len(t, s.begun, 1)
	})
}

func TestStopAtTheEndOfAPauseLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 {
			s := &frail{tell: func(kv.Record, error) {}}
			stop := s.follow()
			time.Sleep(least)
			stop()
			require.Zero(t, s.open)
			begun := len(s.begun)
			time.Sleep(time.Hour)
			require.Len(t, s.begun, begun)
		}
	})
}

// The error is being told when somebody stops.
func TestStopDuringTheTellOfAnErrorBeginsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &frail{tell: func(_ kv.Record, err error) {
			if errors.Is(err, errBroken) {
				time.Sleep(time.Second)
			}
		}}
		stop := s.follow()
		time.Sleep(time.Second / 2)
		stop()
		require.Equal(t, time.Second, time.Since(s.start), "the call has ended")
		time.Sleep(time.Hour)
		require.Len(t, s.begun, 1)
	})
}
