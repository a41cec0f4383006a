package explore_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/explore"
)

// A walk is a world in which somebody walks on a line, and may meet something.
type walk struct {
	at, trouble int
	tired       bool // after a rest, which leads to the same place
}

type step int

func (s step) String() string { return fmt.Sprintf("%+d", int(s)) }

func (w walk) Moves() []step {
	if w.tired {
		return []step{0}
	}
	return []step{-1, 0, 1}
}

func (w walk) After(s step) walk {
	w.at += int(s)
	w.tired = s == 0 && !w.tired
	return w
}

func (w walk) Text() []byte { return fmt.Append(nil, w.at, w.tired) }

func (w walk) Trouble() string {
	if w.at == w.trouble {
		return "it was met"
	}
	return ""
}

func TestTroubleIsFoundAsDeepAsItLiesAndNoSooner(t *testing.T) {
	for depth := range 12 {
		for _, at := range []int{2, 7} {
			trouble := new(explore.Explorer[walk, step]).Run(walk{trouble: at}, depth)
			require.Equal(t, depth >= at, trouble != "", "at %d, %d moves deep", at, depth)
		}
	}
	require.Equal(t, "it was met\n  -1\n  -1\n  -1\n  -1", new(explore.Explorer[walk, step]).Run(walk{trouble: -4}, 4))
}

func TestEachWorldIsMetOnce(t *testing.T) {
	var met atomic.Int64
	e := explore.Explorer[walk, step]{Met: func(walk) { met.Add(1) }}
	require.Empty(t, e.Run(walk{trouble: 100}, 20))
	require.EqualValues(t, 20+1+20+19+1+19, e.Worlds.Load(), "each place, and all but the last two with a rest")
	require.Equal(t, e.Worlds.Load(), met.Load())
	require.Less(t, e.Steps.Load(), int64(20*20*20*3))
}
