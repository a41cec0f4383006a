package scenario

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/seam"
)

// Explore plays random scripts. Whatever happens to the candidates of a
// succession, in any order, what every scenario asserts holds. When all is
// well again, one candidate leads and one is next: by rank the highest of
// all.
func Explore(t *testing.T, engine seam.Engine) {
	rapid.Check(seam.Quiet{T: t}, func(rt *rapid.T) {
		text := drawScript(rt)
		s, err := parseScript(text)
		require.NoError(rt, err)
		found := &finder{}
		var tr string
		synctest.Test(t, func(t *testing.T) {
			found.TB = t
			tr = playOn(found, engine, s)
		})
		if said := found.all(); len(said) > 0 {
			rt.Fatalf("%s\nthe script:\n%s%s%s", strings.Join(said, "\n"), text, divider, tr)
		}
	})
}

// playOn plays a script in which commands may come to nothing, has everything be
// well again, and looks what it comes to.
func playOn(t testing.TB, engine seam.Engine, s *script) string {
	w := newWorld(t, engine, s)
	for _, st := range s.steps {
		_ = w.step(st) // a candidate that does not lead cannot resign
	}
	w.trace.add(turnCommand, "> all is well")
	stand, top := 0, 0
	for _, p := range w.processes() {
		if p.is(dead) {
			continue
		}
		p.goOn()
		p.reach(true)
		p.set(ill, false)
		stand, top = stand+1, max(top, p.opts.Rank)
	}
	time.Sleep(10 * s.ttl)
	w.settles(min(stand, 2), 0)
	if s.order == "rank" && !strings.Contains(s.steps[1].text, "maxterm") {
		time.Sleep(200 * 3 * s.ttl) // longer than any candidate is held back
		w.settles(min(stand, 2), top)
	}
	w.trace.add(turnCommand, "at the end %s; %s", w.state(), w.shares())
	w.close()
	return w.trace.String()
}

// settles waits for a while until there are a leader of a rank and an heir, if so many
// stand.
func (w *world) settles(stand, rank int) {
	var trouble string
	for range 30 {
		time.Sleep(w.script.ttl / 10)
		w.check()
		leader, none := election.Current(w.t.Context(), w.store, scene)
		heir, alone := election.CurrentHeir(w.t.Context(), w.store, scene)
		trouble = fmt.Sprintf("%d stand, and %q of rank %d leads (%v), and %q is next (%v)", stand, leader.ID, leader.Rank, none, heir.ID, alone)
		if (none == nil) == (stand >= 1) && (alone == nil) == (stand >= 2) && leader.Rank >= rank {
			return
		}
	}
	w.t.Errorf("%s; the highest rank is %d", trouble, rank)
}

// drawScript draws a script.
func drawScript(t *rapid.T) string {
	var b strings.Builder
	line := func(format string, a ...any) { fmt.Fprintf(&b, format+"\n", a...) }
	order := rapid.SampledFrom([]string{"rank", "ring", "list", "first"}).Draw(t, "order")
	line("succession %s", order)
	cast := []string{"a", "b", "c", "d", "e"}[:rapid.IntRange(1, 5).Draw(t, "cast")]
	id := rapid.SampledFrom(cast)
	other := rapid.SampledFrom(append([]string{"nobody"}, cast...))
	span := rapid.SampledFrom([]string{"1ms", "10ms", "200ms", "1s", "3s", "8s", "12s", "33s", "65s"})
	maxTerm := rapid.SampledFrom([]string{"", "", "", " maxterm 20s"}).Draw(t, "longest term")
	for i, id := range cast {
		line("candidate %s rank %d%s%s", id, rapid.IntRange(0, 3).Draw(t, "rank"),
			rapid.SampledFrom([]string{"", "", " drains 2s", " drains 14s"}).Draw(t, "drains"), maxTerm)
		if i%2 == 1 {
			line("advance %s", span.Draw(t, "pause"))
		}
	}
	verbs := []string{"kill", "stop", "restart", "restart", "cut", "heal", "heal", "pause", "continue", "continue", "sick", "well", "well", "resign"}
	for range rapid.IntRange(1, 30).Draw(t, "commands") {
		switch verb := rapid.SampledFrom(append(verbs, "transfer", "transfer", "heirs", "request")).Draw(t, "verb"); verb {
		case "transfer":
			line("transfer %s to %s", id.Draw(t, "from"), other.Draw(t, "to"))
		case "heirs":
			line("heirs %s %s,%s", id.Draw(t, "of"), other.Draw(t, "first"), other.Draw(t, "second"))
		case "request":
			line("request %s", rapid.SampledFrom([]string{"resign", "transfer to a", "transfer to b", "transfer to nobody"}).Draw(t, "wish"))
		default:
			line("%s %s", verb, id.Draw(t, "whom"))
		}
		line("advance %s", span.Draw(t, "pause"))
	}
	return b.String()
}

// A finder keeps what a test would fail with.
type finder struct {
	testing.TB

	mu   sync.Mutex
	said []string
}

// Errorf implements [testing.TB].
func (f *finder) Errorf(format string, a ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said = append(f.said, fmt.Sprintf(format, a...))
}

func (f *finder) all() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.said)
}
