package throttle_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/internal/throttle"
	"github.com/electkv/election/kv"
)

const width = 128

// fill enters as often as nobody has to wait.
func fill(t *testing.T, store kv.Store) (leaves []func()) {
	t.Helper()
	for range width {
		leave, err := throttle.Enter(t.Context(), store)
		require.NoError(t, err)
		leaves = append(leaves, leave)
	}
	return leaves
}

func TestARequestWaitsForItsTurnWhereTooManyAreOnTheirWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		leaves := fill(t, store)
		let := make(chan int, 3)
		for i := range 3 {
			go func() {
				leave, err := throttle.Enter(context.WithoutCancel(t.Context()), store)
				if err == nil {
					let <- i
					<-t.Context().Done()
					leave()
				}
			}()
			synctest.Wait()
		}
		require.Empty(t, let)
		for i := range 3 {
			leaves[i]()
			require.Equal(t, i, <-let)
			synctest.Wait()
			require.Empty(t, let)
		}
		for _, leave := range leaves[3:] {
			leave()
		}
	})
}

func TestThereIsAsMuchRoomAfterACrowdAsBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		for _, leave := range fill(t, store) {
			leave()
		}
		for _, leave := range fill(t, store) {
			leave()
		}
	})
}

func TestStoresHaveRoomOfTheirOwn(t *testing.T) {
	full, other := memkv.New(), memkv.New()
	for _, leave := range append(fill(t, full), fill(t, other)...) {
		defer leave()
	}
}

func TestARequestThatIsCalledOffWhileItWaitsTakesNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, why := memkv.New(), errors.New("called off")
		leaves := fill(t, store)
		ctx, cancel := context.WithCancelCause(t.Context())
		told := make(chan error)
		go func() {
			_, err := throttle.Enter(ctx, store)
			told <- err
		}()
		synctest.Wait()
		cancel(why)
		require.ErrorIs(t, <-told, why)
		for _, leave := range leaves {
			leave()
		}
		for _, leave := range fill(t, store) {
			leave()
		}
	})
}

// Some are called off in the moment in which they are let in.
func TestNoRoomIsLostWhenManyComeAndAreCalledOff(t *testing.T) {
	store := memkv.New()
	var crowd sync.WaitGroup
	for i := range 20 * width {
		crowd.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if i%3 == 0 {
				go cancel()
			}
			if leave, err := throttle.Enter(ctx, store); err == nil {
				leave()
			}
		})
	}
	crowd.Wait()
	for _, leave := range fill(t, store) {
		leave()
	}
}

func TestAStoreThatCannotBeToldFromOthersIsNotHeldBack(t *testing.T) {
	odd := struct {
		kv.Store
		settings map[string]string
	}{Store: memkv.New()}
	for range 2 * width {
		leave, err := throttle.Enter(t.Context(), odd)
		require.NoError(t, err)
		defer leave()
	}
}

func TestAStoreIsCrowdedWhileTheNextRequestWouldWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		require.False(t, throttle.Crowded(store))
		leaves := fill(t, store)
		require.True(t, throttle.Crowded(store))
		require.False(t, throttle.Crowded(memkv.New()))
		leaves[0]()
		require.False(t, throttle.Crowded(store))
		for _, leave := range leaves[1:] {
			leave()
		}
	})
}
