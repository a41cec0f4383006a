package machine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

// standing returns a campaign that waits for the heir's place.
func standing() Campaign {
	c := *New(&Config{ID: "a", Nonce: "n", Lines: true, Timing: Timing{TTL: time.Minute, Attempt: time.Second}}, Memory{})
	c.Stage = Standing
	c.Lead.Phase, c.Place.Phase = Waiting, Waiting
	c.Lead.Line.Next, c.Place.Line.Next = never, never
	return c
}

// Nothing else may come to wake it.
func TestACampaignWakesUpWhenALostBidIsForgotten(t *testing.T) {
	c := standing()
	c.Lead.Remains = Remains{Kind: Possible, Since: Instant{}}
	require.Equal(t, time.Minute+1, c.Due())
	c.Step(Instant{Mono: c.Due(), Boot: c.Due()}, &Event{Kind: Tick}, nil)
	require.NotEqual(t, Waiting, c.Lead.Phase, "the leader's key is the heir's to watch")
}

func TestAPlaceInLineIsGivenUpBeforeALostBidIsLookedFor(t *testing.T) {
	c := standing()
	c.Place.Remains = Remains{Kind: Possible}
	c.Lead.Line = Line{Kind: InLine, Ref: RefTo(kv.Record{Signature: "a/n.1", Token: 1}), Next: never}
	effects := c.Step(Instant{Mono: 1, Boot: 1}, &Event{Kind: Withdraw, Within: time.Second}, nil)
	for _, e := range effects {
		if e.Kind == Send && e.Request.Op == Delete && e.Request.Old == c.Lead.Line.Record() {
			return
		}
	}
	require.Fail(t, "the place is kept", "%+v", effects)
}
