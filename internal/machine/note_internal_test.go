package machine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

// leaving returns a campaign of a whose term has ended, and lasted so long.
func leaving(cause Cause, lasted time.Duration, own Note) *turn {
	c := *New(&Config{ID: "a", Stability: 30 * time.Second}, Memory{})
	c.Cause, c.Ended = cause, after(lasted)
	c.Lead.Remains.Ref = RefTo(kv.Record{Signature: "a/1", Note: own.Text()})
	return &turn{Campaign: &c}
}

// A hand-over on purpose is no strike, however short the term was.
func TestALeaderNotesItsOwnStrikes(t *testing.T) {
	for _, c := range []struct {
		name   string
		cause  Cause
		lasted time.Duration
		want   int // from two
	}{
		{"on purpose, soon", Resigned, time.Second, 2},
		{"on purpose, after as long as was asked of it", Resigned, time.Minute, 0},
		{"unhealthy, soon", Unhealthy, time.Second, 3},
		{"unhealthy, just before Stability", Unhealthy, 30*time.Second - 1, 3},
		{"unhealthy, after Stability", Unhealthy, 30 * time.Second, 2},
		{"expired, soon", Expired, time.Second, 3},
		{"taken, soon", Taken, time.Second, 3},
		{"expired, after Stability", Expired, 31 * time.Second, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := leaving(c.cause, c.lasted, Note{Strikes: map[string]int{"a": 2, "c": 1}})
			strikes := NoteOf(kv.Record{Note: l.noteFor(kv.Record{Signature: "b/1"})}).Strikes
			require.Equal(t, c.want, strikes["a"])
			require.Equal(t, 1, strikes["c"])
		})
	}
}

func TestAnHeirLeadsWithItsOwnListIfItHasOne(t *testing.T) {
	l := leaving(Resigned, time.Second, Note{Heirs: []string{"x"}})
	own := kv.Record{Signature: "b/1", Note: Note{Heirs: []string{"y"}, Rank: 7}.Text()}
	require.Equal(t, []string{"y"}, NoteOf(kv.Record{Note: l.noteFor(own)}).Heirs)
	require.Equal(t, 7, NoteOf(kv.Record{Note: l.noteFor(own)}).Rank)
	require.Equal(t, []string{"x"}, NoteOf(kv.Record{Note: l.noteFor(kv.Record{Signature: "b/1"})}).Heirs)
}

// Damaged notes, and those of candidates that know of no leader.
func TestNobodyIsCalledByNobody(t *testing.T) {
	require.False(t, Note{Under: &Leader{}}.byCall(), "it knows of no leader, and none has called it")
	require.False(t, Note{Called: 3}.byCall(), "it does not say under whom")
	require.False(t, Note{Called: 3, Under: &Leader{Token: 4}}.byCall(), "another leads by now")
	require.True(t, Note{Called: 3, Under: &Leader{Token: 3}}.byCall())
}

// Somebody's lock in the leader's safe says nothing of whose terms ended early.
func TestAnHeirRemembersWhoLedBeforeALock(t *testing.T) {
	c := *New(&Config{ID: "h", Nonce: "n", Order: func(_, _, _ Contender) bool { return false }}, Memory{})
	c.Place.Phase, c.Lead.Phase = Owner, Waiting
	l := &turn{Campaign: &c}
	l.size(&c.Lead, kv.Record{Signature: "a/1", Token: 3, Note: Note{Strikes: map[string]int{"a": 2}}.Text()})
	l.size(&c.Lead, kv.Record{Foreign: true, Value: "a lock", Token: 4})
	require.Equal(t, "a", c.Memory.leader().ID)
	require.Equal(t, map[string]int{"a": 2}, NoteOf(kv.Record{Note: c.Place.Text.Note}).Under.Strikes)
}
