package scenario

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/seam"
)

// plain leaves a candidate as users have it.
var plain = seam.Engine{
	SetClock:  func(*election.Candidate, func() (mono, boot time.Duration)) {},
	SetJitter: func(*election.Candidate, func(time.Duration) time.Duration) {},
}

// What can be told only when a script is played is told then.
func TestACommandThatIsNotToBeHadIsRefused(t *testing.T) {
	const begin = "succession rank\ncandidate a\nadvance 5s\ncandidate b\nadvance 5s\n"
	for _, c := range []struct{ script, says string }{
		{"resign b", "b does not lead"},
		{"transfer b to a", "b does not lead"},
		{"heirs b a", "b does not lead"},
		{"restart a", "a runs: kill or stop it first"},
		{"kill b\nadvance 5s\ncut b", "b does not run: restart it first"},
		{"pause a\nresign a", "a is paused: let it continue first"},
		{"pause a\nstop a", "a is paused, and hears nothing: let it continue, or kill it"},
		{"until b leads 1s", "b does not lead"},
	} {
		s, err := parseScript(begin + c.script)
		require.NoError(t, err)
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, plain, s)
			defer w.close()
			for _, st := range s.steps[:len(s.steps)-1] {
				require.NoError(t, w.step(st))
			}
			require.EqualError(t, w.step(s.steps[len(s.steps)-1]), c.says)
		})
	}
}

// Each scenario would notice two leaders: here an operator's hand takes the safe from
// the first, which is cut off and does not learn of it.
func TestTwoLeadersAreNoticedInAScenario(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := parseScript("succession first\ncandidate a\nadvance 5s\ncandidate b\nadvance 5s\ncut a")
		require.NoError(t, err)
		found := &finder{TB: t}
		w := newWorld(found, plain, s)
		defer w.close()
		for _, st := range s.steps {
			require.NoError(t, w.step(st))
		}
		require.Empty(t, found.all())
		w.store.Remove(scene)
		time.Sleep(time.Second)
		require.Len(t, found.all(), 1)
		require.Regexp(t, `^two leaders: b begins term \d+ while a's term \d+ is alive$`, found.all()[0])
	})
}
