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

// An heir looks at the leader's key, and the leader hands over before the answer is taken in.
func TestAnAnswerThatAWatchHasOvertakenCountsNoMore(t *testing.T) {
	c := *New(&Config{ID: "a", Nonce: "n", Timing: Timing{TTL: time.Minute, Refresh: 10 * time.Second, Attempt: time.Second}}, Memory{})
	old, handed := kv.Record{Signature: "b/n.1", Token: 1, TTL: time.Minute}, kv.Record{Signature: "a/n.1", Token: 3, TTL: time.Minute}
	place := kv.Record{Signature: handed.Signature, Token: 2, TTL: time.Minute}
	c.Stage = Standing
	c.Lead = Lock{Key: Lead, Phase: Waiting, Next: never, Line: Line{Next: never}, Seen: Sight{true, RefTo(old)}}
	c.Place = Lock{
		Key: Place, Phase: Owner, Next: never, Line: Line{Next: never}, Signature: place.Signature,
		Remains: Remains{Kind: Mine, Ref: RefTo(place)}, Text: textOf(place), Trust: Trust{Span: time.Minute},
	}
	step := func(after time.Duration, e *Event) (sent []Request) {
		for _, f := range c.Step(Instant{Mono: after, Boot: after}, e, nil) {
			if f.Kind == Send {
				sent = append(sent, f.Request)
			}
		}
		return sent
	}
	look := step(10*time.Second, &Event{Kind: Tick})
	require.Len(t, look, 1)
	require.Equal(t, Get, look[0].Op)
	require.Empty(t, step(10*time.Second, &Event{Kind: Saw, Key: Lead, Sighting: Sighting{Known: true, Record: handed}}))
	then := step(10*time.Second, &Event{Kind: Answered, Answer: Answer{ID: look[0].ID, Key: Lead, Verdict: OK, Record: old}})
	require.Len(t, then, 1)
	require.Equal(t, Refresh, then[0].Op)
	require.Equal(t, handed, then[0].Old)
}

// What a watch shows while a claim is on its way may be newer than the claim.
func TestNewsThatCameDuringAClaimIsFollowedUp(t *testing.T) {
	c := *New(&Config{ID: "a", Nonce: "n", Timing: Timing{TTL: time.Minute, Refresh: 10 * time.Second, Attempt: time.Second, Spread: time.Millisecond}}, Memory{})
	claim := kv.Record{Signature: "a/n.1", TTL: time.Minute}
	c.Stage, c.Requests = Standing, 1
	c.Lead = Lock{Key: Lead, Phase: Waiting, Next: never, Line: Line{Next: never}, Seen: Sight{true, RefTo(kv.Record{Signature: "b/n.1", Token: 1, TTL: time.Minute})}}
	c.Place = Lock{
		Key: Place, Phase: Waiting, Next: never, Line: Line{Next: never}, Signature: claim.Signature,
		Pending: Pending{ID: 1, Op: Create}, Seen: Sight{Known: true},
	}
	step := func(after time.Duration, e *Event) (ops []Op) {
		for _, f := range c.Step(Instant{Mono: after, Boot: after}, e, nil) {
			if f.Kind == Send && f.Key == Place {
				ops = append(ops, f.Request.Op)
			}
		}
		return ops
	}
	call := kv.Record{Signature: "b/n.1.call", Token: 3, TTL: time.Minute}
	require.Empty(t, step(time.Millisecond, &Event{Kind: Saw, Key: Place, Sighting: Sighting{Known: true, Record: call}}))
	claim.Token = 2
	sent := step(2*time.Millisecond, &Event{Kind: Answered, Answer: Answer{ID: 1, Key: Place, Verdict: OK, Record: claim}})
	require.Equal(t, []Op{Refresh}, sent, "it finds out whether the place is still its own")
	require.Equal(t, Owner, c.Place.Phase)
}

// A watch does not repeat what it has shown.
func TestALeaderKnowsTheHeirThatWasThereBeforeItLed(t *testing.T) {
	c := *New(&Config{ID: "a", Nonce: "n", MaxTerm: time.Hour, Timing: Timing{TTL: time.Minute, Refresh: 10 * time.Second, Attempt: time.Second}}, Memory{})
	heir := kv.Record{Signature: "b/n.1", Token: 2, TTL: time.Minute}
	c.Stage, c.Requests = Standing, 1
	c.Lead = Lock{
		Key: Lead, Phase: Waiting, Next: never, Line: Line{Next: never}, Signature: "a/n.1",
		Pending: Pending{ID: 1, Op: Create}, Seen: Sight{Known: true},
	}
	c.Place = Lock{Key: Place, Phase: Waiting, Next: never, Line: Line{Next: never}}
	c.Step(Instant{}, &Event{Kind: Saw, Key: Place, Sighting: Sighting{Known: true, Record: heir}}, nil)
	rec := kv.Record{Signature: "a/n.1", Token: 3, TTL: time.Minute}
	c.Step(Instant{}, &Event{Kind: Answered, Answer: Answer{ID: 1, Key: Lead, Verdict: OK, Record: rec}}, nil)
	require.Equal(t, Leading, c.Stage)
	require.Equal(t, heir, c.Heir.Record())
}
