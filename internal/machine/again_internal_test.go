package machine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

// At whatever time each of them began, on whatever monotonic clock.
func TestRecordsThatShareALeaseAreRefreshedAtTheSameTime(t *testing.T) {
	c := leading()
	turn := &turn{Campaign: &c}
	refresh := c.cfg.Refresh
	seen := make(map[time.Duration]bool)
	for lease := range 20 {
		rec := kv.Record{Lease: fmt.Sprint(lease)}
		var first time.Duration
		for began := time.Duration(0); began < 2*refresh; began += refresh / 7 {
			sent := Instant{Mono: began + time.Hour, Boot: began + 365*24*time.Hour}
			next := turn.again(Lead, &Answer{Sent: sent, Record: rec})
			require.Greater(t, next, sent.Mono)
			require.LessOrEqual(t, next, sent.Mono+refresh, "no later than any other")
			at := sent.Boot + next - sent.Mono // by the boot clock
			if began == 0 {
				first = at
			}
			apart := (at - first) % refresh
			require.Less(t, min(apart, refresh-apart), refresh/64)

			// The next one is due a Refresh after it was due, also if it was made a little late.
			late := Instant{Mono: next + refresh/100, Boot: at + refresh/100}
			require.InDelta(t, next+refresh, turn.again(Lead, &Answer{Sent: late, Record: rec}), float64(refresh/64))
		}
		seen[first%refresh] = true
	}
	require.Greater(t, len(seen), turns/2, "those with different leases take turns")
	require.LessOrEqual(t, len(seen), turns)
}

// It would be refreshed twice each time.
func TestABootClockThatIsALittleSlowMakesNoSecondRefresh(t *testing.T) {
	c := leading()
	turn := &turn{Campaign: &c}
	refresh := c.cfg.Refresh
	rec := kv.Record{Lease: "1"}
	sent := Instant{Mono: time.Hour, Boot: time.Hour + refresh/2}
	due := turn.again(Lead, &Answer{Sent: sent, Record: rec})
	slow := Instant{Mono: due, Boot: sent.Boot + due - sent.Mono - refresh/1000}
	require.Equal(t, due+refresh, turn.again(Lead, &Answer{Sent: slow, Record: rec}))
}

func TestARecordThatSharesNoLeaseIsRefreshedWithThoseItWentWith(t *testing.T) {
	c := leading()
	turn := &turn{Campaign: &c}
	sent := Instant{Mono: time.Second, Boot: time.Minute}
	due, ahead := sent.Mono+c.cfg.Refresh, c.cfg.Refresh/50
	require.Equal(t, due, turn.again(Lead, &Answer{Sent: sent}))
	require.Equal(t, due-ahead, turn.again(Lead, &Answer{Sent: sent, Ahead: ahead}))
	require.GreaterOrEqual(t, turn.again(Lead, &Answer{Sent: sent, Ahead: time.Hour}), sent.Mono+c.cfg.Refresh/2, "not over and over")
	heirs := Answer{Sent: sent, Record: kv.Record{Lease: "1"}, Ahead: ahead}
	require.Equal(t, due-ahead, turn.again(Place, &heirs), "which share none")
	noBoot := Answer{Sent: Instant{Mono: sent.Mono}, Record: kv.Record{Lease: "1"}}
	require.Equal(t, due, turn.again(Lead, &noBoot), "there is no clock that elections have in common")
}
