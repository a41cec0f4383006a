package machine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

// leading returns a campaign whose refresh is due in its turn.
func leading() Campaign {
	c := *New(&Config{ID: "a", Nonce: "n", Timing: Timing{
		TTL: 10 * time.Second, Margin: time.Second, Refresh: 3 * time.Second, Attempt: 3 * time.Second,
		Spread: 100 * time.Millisecond, Pause: time.Second,
	}}, Memory{})
	rec := kv.Record{Signature: "a/n.1", Token: 1, Revision: 1, TTL: 10 * time.Second}
	c.Stage = Leading
	l := &c.Lead
	l.Phase, l.Signature = Owner, rec.Signature
	l.Remains = Remains{Kind: Mine, Ref: RefTo(rec)}
	l.Trust = Trust{Span: 9 * time.Second}
	l.Turn, l.Next, l.Line.Next, l.Text = 3*time.Second, 3*time.Second, never, textOf(rec)
	return c
}

func TestARefreshGoesTogetherWithOthersOnlyIfNothingHangsOnIt(t *testing.T) {
	at := func(seconds int) Instant {
		d := time.Duration(seconds) * time.Second
		return Instant{Mono: d, Boot: d}
	}
	for name, test := range map[string]struct {
		now    Instant
		change func(l *Lock)
		shared bool
	}{
		"in its turn":               {now: at(3), shared: true},
		"late, with much trust":     {now: at(5), shared: true},
		"with little trust":         {now: at(6)},
		"after a suspend":           {now: Instant{Mono: 3 * time.Second, Boot: 6 * time.Second}},
		"after one that failed":     {now: at(4), change: func(l *Lock) { l.Tries = 1 }},
		"for what a watch has told": {now: at(1), change: func(l *Lock) { l.sees(kv.Record{Signature: "b/m.1", Token: 2}) }},
		"of a term that has ended":  {now: at(3), change: func(l *Lock) { l.Phase = Lapsed }},
	} {
		t.Run(name, func(t *testing.T) {
			c := leading()
			if test.change != nil {
				test.change(&c.Lead)
			}
			if c.Lead.Phase == Lapsed {
				c.Drain = true
			}
			effects := c.Step(test.now, &Event{Kind: Tick}, nil)
			require.Len(t, effects, 1)
			require.Equal(t, Refresh, effects[0].Request.Op)
			require.Equal(t, test.shared, effects[0].Request.Shared)
		})
	}
}
