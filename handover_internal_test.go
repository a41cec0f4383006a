package election

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

// leaving returns a term of a that has ended, and lasted so long.
func leaving(cause error, lasted time.Duration, own note) *Term {
	c := &Candidate{opts: Options{ID: "a", Stability: 30 * time.Second}, office: leadership}
	began := time.Now()
	return &Term{c: c, rec: kv.Record{Signature: "a/1", Note: own.text()}, began: began, cause: cause, ended: began.Add(lasted)}
}

// A hand-over on purpose is no strike, however short the term was.
func TestALeaderNotesItsOwnStrikes(t *testing.T) {
	ill, lost := fmt.Errorf("%w: %w", ErrResigned, errUnhealthy), fmt.Errorf("%w: late", ErrLost)
	for _, c := range []struct {
		name   string
		cause  error
		lasted time.Duration
		want   int // from two
	}{
		{"on purpose, soon", ErrResigned, time.Second, 2},
		{"on purpose, after as long as was asked of it", ErrResigned, time.Minute, 0},
		{"unhealthy, soon", ill, time.Second, 3},
		{"unhealthy, just before Stability", ill, 30*time.Second - 1, 3},
		{"unhealthy, after Stability", ill, 30 * time.Second, 2},
		{"lost, soon", lost, time.Second, 3},
		{"lost, after Stability", lost, 31 * time.Second, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			term := leaving(c.cause, c.lasted, note{Strikes: map[string]int{"a": 2, "c": 1}})
			strikes := noteOf(kv.Record{Note: term.will(kv.Record{Signature: "b/1"})}).Strikes
			require.Equal(t, c.want, strikes["a"])
			require.Equal(t, 1, strikes["c"])
		})
	}
}

func TestAnHeirLeadsWithItsOwnListIfItHasOne(t *testing.T) {
	term := leaving(ErrResigned, time.Second, note{Heirs: []string{"x"}})
	own := kv.Record{Signature: "b/1", Note: note{Heirs: []string{"y"}, Rank: 7}.text()}
	require.Equal(t, []string{"y"}, noteOf(kv.Record{Note: term.will(own)}).Heirs)
	require.Equal(t, 7, noteOf(kv.Record{Note: term.will(own)}).Rank)
	require.Equal(t, []string{"x"}, noteOf(kv.Record{Note: term.will(kv.Record{Signature: "b/1"})}).Heirs)
}

// Damaged notes, and those of candidates that know of no leader.
func TestNobodyIsCalledByNobody(t *testing.T) {
	require.False(t, note{Under: &reign{}}.called(), "it knows of no leader, and none has called it")
	require.False(t, note{Called: 3}.called(), "it does not say under whom")
	require.False(t, note{Called: 3, Under: &reign{Token: 4}}.called(), "another leads by now")
	require.True(t, note{Called: 3, Under: &reign{Token: 3}}.called())
	require.True(t, note{}.since().IsZero())
}

// Somebody's lock in the leader's safe says nothing of whose terms ended early.
func TestAnHeirRemembersWhoLedBeforeALock(t *testing.T) {
	c := &Candidate{chronicle: &chronicle{}}
	h := &heir{term: &Term{c: c}, told: make(chan reign, 1)}
	h.sees(kv.Record{Signature: "a/1", Token: 3, Note: note{Strikes: map[string]int{"a": 2}}.text()})
	h.sees(kv.Record{Foreign: true, Value: "a lock", Token: 4})
	require.Equal(t, "a", c.chronicle.latest().ID)
	require.Equal(t, map[string]int{"a": 2}, (<-h.told).Strikes)
}
